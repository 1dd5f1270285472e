package queue

import (
	"context"
	"fmt"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// EndpointQueue tells operators what waits for whom.
const EndpointQueue = "queue"

// QueueRequest asks for it; with Counts for the number of executions by status too, which
// asks every shard of Redis.
type QueueRequest struct {
	Version int  `json:"v"`
	Counts  bool `json:"counts,omitempty"`
}

// QueueAnswer is the work of all coordinators and workers that were heard of lately.
// Figures of others than the coordinator that answers are up to AnnounceEvery old.
type QueueAnswer struct {
	At           int64         `json:"at"` // milliseconds since 1970
	Coordinators int           `json:"coordinators"`
	Pools        []QueuePool   `json:"pools"`
	Workers      []QueueWorker `json:"workers"`
	// Fleet are the coordinators themselves, the one that answers first.
	Fleet []QueueCoordinator `json:"fleet,omitempty"`
	// Executions by status; empty when they were not asked for.
	Executions map[engine.Status]int64 `json:"executions,omitempty"`
	// StuckExecutions run and nothing has happened to them for REPRISE_STUCK_AFTER; Stuck names
	// up to ten, those that stand still for longest first. They come with the counts.
	StuckExecutions int                  `json:"stuckExecutions"`
	Stuck           []engine.ExecutionID `json:"stuck,omitempty"`
}

// QueuePool is the work of one pool.
type QueuePool struct {
	Pool string `json:"pool"`
	// Waiting jobs are held back by coordinators, Limited ones by a rate limit; Published ones
	// were handed to NATS and are not answered: they are queued there or run.
	Waiting   int `json:"waiting"`
	Limited   int `json:"limited"`
	Published int `json:"published"`
	// Running is the number of jobs that workers say they hold.
	Running int `json:"running"`
	// OldestMillis is the age of the oldest job that waits or is published; 0 is none.
	OldestMillis int64 `json:"oldestMs,omitempty"`
	// Old is the number of jobs that wait or are published for more than 30 s.
	Old int `json:"old,omitempty"`
	// Workers that serve the pool, those of them that have nothing to do, and the jobs of it that
	// they can run at once. Stuck: more jobs of it are old than run, although a worker has been idle for
	// as long, or there is none.
	Workers int  `json:"workers"`
	Idle    int  `json:"idle"`
	Slots   int  `json:"slots"`
	Stuck   bool `json:"stuck,omitempty"`
}

// QueueCoordinator is one coordinator.
type QueueCoordinator struct {
	ID   string `json:"id"`
	Seen int64  `json:"seen"` // its last notice, milliseconds since 1970
	// Held is how many jobs it holds back; the others are as in its notice.
	Held      int    `json:"held"`
	LagMillis int64  `json:"lagMs"`
	Started   uint64 `json:"started"`
	Finished  uint64 `json:"finished"`
}

// QueueWorker is one worker.
type QueueWorker struct {
	WorkerNotice
	Seen int64 `json:"seen"` // its last notice, milliseconds since 1970
}

// Queue asks a coordinator for the work of all, with the executions by status when
// counts is set.
func (c *Conn) Queue(ctx context.Context, counts bool) (*QueueAnswer, error) {
	answer, err := ask[*QueueAnswer](ctx, c, subjectAPI+EndpointQueue, QueueRequest{Version: Version, Counts: counts})
	if err == nil && answer == nil {
		err = errNoAnswer
	}
	if err != nil {
		return nil, fmt.Errorf("get queue: %w", err)
	}
	return answer, nil
}
