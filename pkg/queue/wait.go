package queue

import (
	"context"
	"errors"
	"time"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// lookAgain is how often a wait looks at the execution itself, for the case that a notice
// was lost.
const lookAgain = 2 * time.Second

// lookPatience is how long the first look may take. The next after one that took too long has twice
// as long: large run data takes its time.
const lookPatience = 5 * time.Second

// waitUntil looks at an execution until look reports true: at once, after each notice that
// matters, and every lookAgain. One look has lookPatience and not the whole time of the
// caller: the coordinator that got the question may have died with it, and then another one is asked.
func (c *Conn) waitUntil(ctx context.Context, id engine.ExecutionID, matters func(*Live) bool, look func(context.Context) (bool, error)) error {
	changed := make(chan struct{}, 1)
	stop, err := c.WatchLive(id, func(n Live) {
		if matters(&n) {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	})
	if err != nil {
		return err
	}
	defer stop()
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for patience := lookPatience; ; {
		one, cancel := context.WithTimeout(ctx, patience)
		done, err := look(one)
		late := one.Err() != nil
		cancel()
		switch {
		case done:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !late && !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrNoCoordinator):
			return err
		case late:
			patience *= 2
			continue
		}
		select {
		case <-changed:
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
