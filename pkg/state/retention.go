package state

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// pruneShare is how many executions of a shard one call of Prune takes,
// pruneGroup how many are removed in one round trip.
const (
	pruneShare = 100
	pruneGroup = 256
)

// Answers of the remove script.
const (
	removed          = 1
	removeNotFound   = 0
	removeUnfinished = -1
	removeTooYoung   = -2
	removeUnsettled  = -3
)

// removeScript removes a finished execution: its keys, if they have not expired
// yet, and its index entries. It checks again what its caller has read, as the
// id may have been used anew since.
//
//	KEYS  1-4 meta, stack, run, open; 5 finished; 6-8 index:success, index:error, index:canceled; 9 active
//	ARGV  1 execution   2 finished at or before (ms), "" whenever, if it is settled
//	reply one of the remove… numbers
var removeScript = newScript(`
local status = redis.call('HGET', KEYS[1], '~s')
if status == 'running' or status == 'waiting' or status == 'new' then return -1 end
local stopped = redis.call('ZSCORE', KEYS[5], ARGV[1])
if ARGV[2] ~= '' and stopped and tonumber(stopped) > tonumber(ARGV[2]) then return -2 end
if ARGV[2] == '' and status and redis.call('ZSCORE', KEYS[9], ARGV[1]) then return -3 end
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
redis.call('ZREM', KEYS[5], ARGV[1])
for i = 6, 9 do redis.call('ZREM', KEYS[i], ARGV[1]) end
if status or stopped then return 1 end
return 0
`)

func (s *Store) removeCall(ctx context.Context, id engine.ExecutionID, before string) *redis.Cmd {
	k := s.shard(id)
	keys := make([]string, 0, 9)
	for _, t := range tables {
		keys = append(keys, k.table(id, t))
	}
	keys = append(keys, k.finished, k.index[engine.StatusSuccess], k.index[engine.StatusError], k.index[engine.StatusCanceled], k.active)
	return removeScript.call(ctx, keys, []any{string(id), before})
}

// Delete removes a finished execution before its time. Errors: ErrNotFound,
// ErrUnfinished, ErrUnsettled.
func (s *Store) Delete(ctx context.Context, id engine.ExecutionID) error {
	if err := checkID(id); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	call := s.removeCall(ctx, id, "")
	s.run(ctx, []*redis.Cmd{call})
	switch code, err := call.Int(); {
	case err != nil:
		return wrap(err, "delete execution %s", id)
	case code == removeUnfinished:
		return fmt.Errorf("delete execution %s: %w", id, ErrUnfinished)
	case code == removeUnsettled:
		return fmt.Errorf("delete execution %s: %w", id, ErrUnsettled)
	case code == removeNotFound:
		return fmt.Errorf("delete execution %s: %w", id, ErrNotFound)
	}
	return nil
}

// Prune removes executions that finished at or before that time (ms), some
// hundred per shard at most, and returns how many. Their keys expire by themselves
// after the retention; the index entries do not, so the caller prunes what finished more than
// Retention ago, until it gets 0. Unsettled ones go as well: the retention is also the
// time in which the end of an execution can be reported. Several may prune at once.
func (s *Store) Prune(ctx context.Context, before int64) (int, error) {
	pipe := s.client.Pipeline()
	var cmds [Shards]*redis.StringSliceCmd
	limit := strconv.FormatInt(before, 10)
	for n := range cmds {
		cmds[n] = pipe.ZRangeByScore(ctx, s.keys[n].finished, &redis.ZRangeBy{Min: "-inf", Max: limit, Count: pruneShare})
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, wrap(err, "prune: read the finished executions")
	}
	var ids []string
	for _, c := range cmds {
		ids = append(ids, c.Val()...)
	}
	total := 0
	for group := range slices.Chunk(ids, pruneGroup) {
		calls := make([]*redis.Cmd, len(group))
		for i, id := range group {
			calls[i] = s.removeCall(ctx, engine.ExecutionID(id), limit)
		}
		s.run(ctx, calls)
		for i, call := range calls {
			code, err := call.Int()
			if err != nil {
				return total, wrap(err, "prune execution %s", group[i])
			}
			if code == removed {
				total++
			}
		}
	}
	return total, nil
}
