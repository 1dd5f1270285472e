package state

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// settleGroup is how many executions are settled in one round trip.
const settleGroup = 256

// settleScript ends the sweeps of an execution that is over, or gone.
//
//	KEYS  1 meta; 2 active   ARGV  1 execution
//	reply 1 settled, 0 unfinished or settled before
var settleScript = newScript(`
local status = redis.call('HGET', KEYS[1], '~s')
if status == 'running' or status == 'waiting' or status == 'new' then return 0 end
return redis.call('ZREM', KEYS[2], ARGV[1])
`)

// Settle says that everybody who is to know of the end of these executions has
// been told: ClaimStale does not hand them out any more. Those that are not there
// (any more) are settled too; unfinished ones are left alone. A repeat is harmless.
func (s *Store) Settle(ctx context.Context, ids []engine.ExecutionID) error {
	for _, id := range ids {
		if err := checkID(id); err != nil {
			return fmt.Errorf("settle: %w", err)
		}
	}
	for group := range slices.Chunk(ids, settleGroup) {
		calls := make([]*redis.Cmd, len(group))
		for i, id := range group {
			k := s.shard(id)
			calls[i] = settleScript.call(ctx, []string{k.table(id, engine.TableMeta), k.active}, []any{string(id)})
		}
		s.run(ctx, calls)
		for i, call := range calls {
			if err := call.Err(); err != nil {
				return wrap(err, "settle execution %s", group[i])
			}
		}
	}
	return nil
}
