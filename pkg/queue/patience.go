package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// retryUnknown is the pause after a refusal that does not say when to try again.
const retryUnknown = time.Second

// SubmitPatiently is Submit, tried again while coordinators refuse as overloaded or full, or cannot
// reach Redis: after as long as they ask for, and up to half as long again, so that many clients do not come back at the
// same moment. refused, when it is not nil, is told before each pause. After patience, or when
// the next try would be later than that, the last refusal is returned, still a *Problem. A
// submission without an id gets one, so that none begins twice.
func (c *Conn) SubmitPatiently(ctx context.Context, s *Submission, patience time.Duration, refused func(p *Problem, pause time.Duration)) (engine.ExecutionID, error) {
	sent := *s
	if sent.ID == "" {
		sent.ID = engine.ExecutionID(uuid.NewString())
	}
	for since := time.Now(); ; {
		id, err := c.Submit(ctx, &sent)
		var problem *Problem
		if !errors.As(err, &problem) || !slices.Contains([]string{CodeOverloaded, CodeFull, CodeUnavailable}, problem.Code) {
			return id, err
		}
		pause := time.Duration(problem.RetryAfter) * time.Millisecond
		if pause <= 0 {
			pause = retryUnknown
		}
		pause += rand.N(pause/2 + 1)
		if waited := time.Since(since); waited+pause > patience {
			if patience <= 0 {
				return "", err
			}
			return "", fmt.Errorf("gave up after %s: %w", waited.Round(100*time.Millisecond), err)
		}
		if refused != nil {
			refused(problem, pause)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return "", fmt.Errorf("%w (the last refusal: %s)", ctx.Err(), problem.Message)
		}
	}
}
