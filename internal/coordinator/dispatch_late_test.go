package coordinator

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
)

// slowLook finds all jobs open, and lets something happen before it says so.
type slowLook struct {
	Store
	HeldStore
	meanwhile func()
}

func (s slowLook) OpenJobs(_ context.Context, jobs []state.JobRef) ([]bool, error) {
	open := make([]bool, len(jobs))
	for i := range open {
		open[i] = true
	}
	s.meanwhile()
	return open, nil
}

// published notes the jobs it is given.
type published struct {
	Transport
	jobs []engine.JobID
}

func (p *published) PublishJobs(_ context.Context, jobs []*queue.Job) (wait func() []error) {
	p.jobs = append(p.jobs, ids(jobs)...)
	return func() []error { return make([]error, len(jobs)) }
}

// Of jobs that were held for long and are looked up, those go that nobody has answered until then.
func TestLateJobsThatAreAnsweredDuringTheLook(t *testing.T) {
	d := newDesk(t)
	d.fillWindow()
	limited := func(o *offer) { o.limits = []limit{{}} }
	r := d.give(d.job("x", limited), d.job("y", limited))
	for _, e := range r.reserve {
		d.limited(e, d.clock+3000)
	}
	d.clock += 3000
	due, _ := d.tick()
	require.Len(t, due.late, 2)
	sent := &published{}
	c := &Coordinator{
		config: Config{
			Transport: sent, Log: zap.NewNop(), Now: time.Now,
			Store: slowLook{meanwhile: func() { d.elsewhere([]engine.JobID{due.late[0].ID}) }},
		},
		log: zap.NewNop(), ctx: t.Context(), dispatch: d.dispatcher,
	}
	c.publishLate(due.late)
	c.wg.Wait()
	require.Equal(t, []engine.JobID{due.late[1].ID}, sent.jobs)
}
