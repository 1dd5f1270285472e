package queue

import (
	"context"
	"fmt"
)

// CountDead is the number of dead letters that are kept.
func (c *Conn) CountDead(ctx context.Context) (int, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	stream, err := c.js.Stream(ctx, StreamDead) // with its state
	if err != nil {
		return 0, fmt.Errorf("count dead letters: %w", classify(err))
	}
	return int(stream.CachedInfo().State.Msgs), nil
}
