package state

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// keptGroup is how many executions Kept asks for in one round trip.
const keptGroup = 1000

// Kept tells which executions are there, in the order of ids: unfinished ones, and finished ones
// whose retention is not over.
func (s *Store) Kept(ctx context.Context, ids []engine.ExecutionID) ([]bool, error) {
	kept := make([]bool, 0, len(ids))
	for len(kept) < len(ids) {
		group := ids[len(kept):min(len(kept)+keptGroup, len(ids))]
		pipe := s.client.Pipeline()
		answers := make([]*redis.IntCmd, len(group))
		for i, id := range group {
			if err := checkID(id); err != nil {
				return nil, fmt.Errorf("kept: %w", err)
			}
			answers[i] = pipe.Exists(ctx, s.shard(id).table(id, engine.TableMeta))
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return nil, wrap(err, "ask whether %d executions are kept", len(group))
		}
		for _, answer := range answers {
			kept = append(kept, answer.Val() > 0)
		}
	}
	return kept, nil
}
