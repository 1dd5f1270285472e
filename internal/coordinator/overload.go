package coordinator

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

const (
	// overloadLag is how long events may wait for their lane before new executions are refused: as
	// long as a client waits for its answer.
	overloadLag = 10 * time.Second
	// The bounds of what a refused client is told to wait.
	retryLeast, retryMost = time.Second, 30 * time.Second
	// retryFull is how long a client should wait for room in Redis or NATS.
	retryFull = 5 * time.Second
)

// overloaded says why no new execution is taken now, nil when it is. What has been
// taken is never given up.
func (c *Coordinator) overloaded(id engine.ExecutionID) *queue.Problem {
	switch held, bytes, wait := c.dispatch.backlog(); {
	case held >= c.config.MaxBacklog:
		return overload(wait, "%d jobs wait for workers already, at most %d may (REPRISE_MAX_BACKLOG)", held, c.config.MaxBacklog)
	case bytes >= int64(c.config.MaxBacklogBytes):
		return overload(wait, "the %d jobs that wait for workers take %d MB already, at most %d MB may be taken (REPRISE_MAX_BACKLOG_BYTES)",
			held, bytes>>20, c.config.MaxBacklogBytes>>20)
	}
	if lag := c.laneOf(id).lag(c.now()); lag > overloadLag {
		return overload(lag/2, "events wait for %s already, at most %s are allowed: is redis slow?", lag.Round(time.Millisecond), overloadLag)
	}
	return nil
}

func overload(wait time.Duration, format string, args ...any) *queue.Problem {
	wait = min(max(wait, retryLeast), retryMost)
	return &queue.Problem{
		Code: queue.CodeOverloaded, RetryAfter: wait.Milliseconds(),
		Message: "the coordinator is overloaded: " + fmt.Sprintf(format, args...) + fmt.Sprintf("; try again in %s", wait.Round(100*time.Millisecond)),
	}
}

// laneOf is the lane of an execution.
func (c *Coordinator) laneOf(id engine.ExecutionID) *lane {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return c.lanes[int(h.Sum32()%uint32(len(c.lanes)))]
}

// lag is how long ago the work was handed in that the lane does now, or did not finish.
func (l *lane) lag(now int64) time.Duration {
	since := l.since.Load()
	if since == 0 {
		return 0
	}
	return time.Duration(now-since) * time.Millisecond
}

// checkPriority checks what a submission says of its priority and tenant.
func checkPriority(sub *queue.Submission) *queue.Problem {
	switch sub.Priority {
	case "", "high", "normal", "low":
	default:
		return badRequest("priority %q is none of high, normal, low", sub.Priority)
	}
	if len(sub.Tenant) > maxTenant {
		return badRequest("tenant %.40q…: it must have at most %d bytes", sub.Tenant, maxTenant)
	}
	return nil
}

const maxTenant = 128
