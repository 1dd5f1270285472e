package state

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// StuckExecution is a running execution whose state has not changed for long.
type StuckExecution struct {
	Execution    engine.ExecutionID
	WorkflowName string
	Moved        int64 // ms, when it last changed
}

// stuckShare is how many of the oldest running executions of a shard Stuck looks at.
const stuckShare = 100

// Stuck returns the running executions that have not changed since before (ms), those that stand still
// for longest first. Those that wait, or wait for their turn, are none of them. It reads the
// index of running executions and two fields of those that started before, in two round
// trips, and none of their data; of each shard the oldest 100.
func (s *Store) Stuck(ctx context.Context, before int64) ([]StuckExecution, error) {
	pipe := s.client.Pipeline()
	var cmds [Shards]*redis.StringSliceCmd
	limit := strconv.FormatInt(before, 10)
	for n := range cmds {
		cmds[n] = pipe.ZRangeByScore(ctx, s.keys[n].index[engine.StatusRunning], &redis.ZRangeBy{Min: "-inf", Max: limit, Count: stuckShare})
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, wrap(err, "list running executions")
	}
	var ids []engine.ExecutionID
	for _, c := range cmds {
		for _, id := range c.Val() {
			ids = append(ids, engine.ExecutionID(id))
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	pipe = s.client.Pipeline()
	fields := make([]*redis.SliceCmd, len(ids))
	for i, id := range ids {
		fields[i] = pipe.HMGet(ctx, s.shard(id).table(id, engine.TableMeta), fieldStatus, fieldMoved, fieldStarted, fieldWorkflowName)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, wrap(err, "read running executions")
	}
	var stuck []StuckExecution
	for i, c := range fields {
		text := func(n int) string { t, _ := c.Val()[n].(string); return t }
		moved, err := strconv.ParseInt(text(1), 10, 64)
		if err != nil { // stored by a program that did not note it
			moved, _ = strconv.ParseInt(text(2), 10, 64)
		}
		if text(0) == string(engine.StatusRunning) && moved <= before {
			stuck = append(stuck, StuckExecution{Execution: ids[i], WorkflowName: text(3), Moved: moved})
		}
	}
	slices.SortFunc(stuck, func(a, b StuckExecution) int {
		return cmp.Or(cmp.Compare(a.Moved, b.Moved), cmp.Compare(a.Execution, b.Execution))
	})
	return stuck, nil
}
