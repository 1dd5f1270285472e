package trigger

import (
	"context"
	"time"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/state"
)

// polls reports whether a trigger looks for something new, at moments: its node then runs as a job
// of a worker, as the secrets that this may need are there.
func polls(nodeType string) bool { return nodeType == typeFeed || nodeType == typeMailbox }

// Bounds of what is done between taking a slot and its execution being stored. A slot whose
// execution is not stored is given to that execution again, until it is so old that
// nobody can be about to store it.
const (
	pollSubmission = 30 * time.Second
	pollMemory     = 5 * time.Minute
)

// poll has the node look for something new. Polls of a node follow one another: what one finds, the
// next has to know. So a moment at which the one before is not over is left out, and the slot says
// which one that is, for all processes.
func (c *scheduler) poll(ctx context.Context, s *schedule, at time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, pollSubmission)
	defer cancel()
	id, trigger := s.slotID(at), digest(s.id, s.node.Name)
	var next engine.ExecutionID
	_, err := c.host.Store.TakeSlot(ctx, trigger, func(held state.Slot) (state.Slot, bool, error) {
		now := c.host.Now().UnixMilli()
		next = ""
		switch {
		case held.Execution == id:
			next = id // again, as its answer may have been lost
			return held, false, nil
		case held.Moment >= at.UnixMilli():
			return held, false, nil
		case held.Execution != "":
			stored, over, err := c.host.Store.Begun(ctx, held.Execution, s.node.Name)
			switch {
			case err != nil:
				return held, false, err
			case !stored && now-held.TakenAt < pollMemory.Milliseconds():
				next = held.Execution
				return held, false, nil
			case stored && !over:
				return held, false, nil
			}
		}
		next = id
		return state.Slot{Execution: id, Moment: at.UnixMilli(), TakenAt: now}, true, nil
	})
	if err != nil || next == "" {
		return err
	}
	return c.begin(ctx, s, next, nil)
}
