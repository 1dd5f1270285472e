package service

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/coordinator"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// transport makes a connection the coordinator's transport.
type transport struct {
	*queue.Conn
	proof *proof
}

// PublishJobs implements coordinator.Transport.
func (t transport) PublishJobs(ctx context.Context, jobs []*queue.Job) (wait func() []error) {
	return t.StartPublish(ctx, t.proof.sign(jobs)).Wait
}

// ServeResults implements coordinator.Transport.
func (t transport) ServeResults(id string, handler func(r *queue.Result, size int, reply func(queue.Reply))) (stop func(), err error) {
	return t.Conn.ServeResults(id, func(r *queue.Result, size int, reply func(queue.Reply)) {
		if t.proof.accepts(r.Job, r.Token, r.Ack, reply) {
			handler(r, size, reply)
		}
	})
}

// ServeRedelivery implements coordinator.Transport.
func (t transport) ServeRedelivery(handler func(q *queue.Redelivery, reply func(queue.Reply))) (stop func(), err error) {
	return t.Conn.ServeRedelivery(func(q *queue.Redelivery, reply func(queue.Reply)) {
		if t.proof.accepts(q.Job, q.Token, "", reply) {
			handler(q, reply)
		}
	})
}

// proof makes sure that who answers for a job was given it. NATS's permissions say who may
// send results, but not for which jobs, whose ids can be guessed. So a job carries a code
// that only coordinators can make and only its pool's workers can read. It is computed
// from the id, so that nothing has to be stored and any coordinator can check it. nil asks
// for nothing.
type proof struct {
	key []byte
	log *zap.Logger
}

func newProof(key string, log *zap.Logger) (*proof, error) {
	if key == "" {
		return nil, nil
	}
	secret, err := keyBytes("REPRISE_JOB_KEY", key)
	if err != nil {
		return nil, err
	}
	return &proof{key: secret, log: log}, nil
}

// token is a job's: the pool it was published for, and the code for both.
func (p *proof) token(id engine.JobID, pool string) string {
	if pool == "" {
		pool = queue.DefaultPool
	}
	mac := hmac.New(sha256.New, p.key)
	mac.Write([]byte(pool + "." + string(id)))
	return pool + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// sign returns the jobs with their tokens; those that are given are not changed, as others
// may be reading them.
func (p *proof) sign(jobs []*queue.Job) []*queue.Job {
	if p == nil {
		return jobs
	}
	jobs = slices.Clone(jobs)
	for i, job := range jobs {
		signed := *job
		signed.Token = p.token(job.ID, job.Pool)
		jobs[i] = &signed
	}
	return jobs
}

// accepts reports whether a token is that of a job, and an acknowledgement, unless it is
// empty, of a job of the same pool; else it refuses with reply.
func (p *proof) accepts(id engine.JobID, token, ack string, reply func(queue.Reply)) bool {
	if p == nil {
		return true
	}
	pool, _, _ := strings.Cut(token, ".")
	if hmac.Equal([]byte(token), []byte(p.token(id, pool))) {
		if acked, ok := queue.AckPool(ack); ack == "" || ok && acked == pool {
			return true
		}
	}
	p.log.Warn("refused: it does not carry the token of its job", zap.String("job", string(id)))
	reply(queue.Reply{Verdict: queue.VerdictDrop, Error: fmt.Sprintf("the message does not carry the token that came with job %s", id)})
	return false
}

// ServeSubmissions implements coordinator.Transport.
func (t transport) ServeSubmissions(handler func(coordinator.DurableSubmission)) (stop func(), err error) {
	return t.ConsumeSubmissions(context.Background(), func(m *queue.SubmitMsg) { handler(submission{m}) })
}
