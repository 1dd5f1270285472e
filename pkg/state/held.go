package state

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// JobRef names an open job.
type JobRef struct {
	Execution engine.ExecutionID
	Job       engine.JobID
}

// OpenJobs reports which of these jobs are still open, in one round trip.
func (s *Store) OpenJobs(ctx context.Context, jobs []JobRef) ([]bool, error) {
	pipe := s.client.Pipeline()
	reads := make([]*redis.BoolCmd, len(jobs))
	for i, j := range jobs {
		if err := checkID(j.Execution); err != nil {
			return nil, fmt.Errorf("look for open jobs: %w", err)
		}
		reads[i] = pipe.HExists(ctx, s.shard(j.Execution).table(j.Execution, engine.TableOpen), engine.JobField(j.Job))
	}
	if len(reads) == 0 {
		return nil, nil
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, wrap(err, "look for open jobs")
	}
	open := make([]bool, len(jobs))
	for i, r := range reads {
		open[i] = r.Val()
	}
	return open, nil
}

// postponeScript sets when executions that are looked at by the sweeper are looked at next. It
// begins with a removal, of nothing, to be admitted at maxmemory (see the package comment).
//
//	KEYS  1 active   ARGV  1 next look   2- executions
//	reply number of those that are there
var postponeScript = newScript(`
redis.call('ZREM', KEYS[1], '')
local n = 0
for i = 2, #ARGV do
  if redis.call('ZSCORE', KEYS[1], ARGV[i]) then
    redis.call('ZADD', KEYS[1], ARGV[1], ARGV[i])
    n = n + 1
  end
end
return n
`)

// postponeGroup is how many executions one call of the script takes.
const postponeGroup = 1000

// Postpone sets when the sweeper looks at executions next (ms), unless they move before.
// Those that it does not look at any more stay out. It is one round trip.
func (s *Store) Postpone(ctx context.Context, ids []engine.ExecutionID, next int64) error {
	byShard := map[int][]any{}
	for _, id := range ids {
		if err := checkID(id); err != nil {
			return fmt.Errorf("postpone sweeps: %w", err)
		}
		n := ShardOf(string(id))
		byShard[n] = append(byShard[n], string(id))
	}
	var calls []*redis.Cmd
	for n, members := range byShard {
		for group := range slices.Chunk(members, postponeGroup) {
			calls = append(calls, postponeScript.call(ctx, []string{s.keys[n].active}, append([]any{next}, group...)))
		}
	}
	s.run(ctx, calls)
	for n := range byShard {
		s.sweeps.note(n, next) // it may be sooner than it was
	}
	for _, call := range calls {
		if err := call.Err(); err != nil {
			return wrap(err, "postpone sweeps")
		}
	}
	return nil
}

// CountByStatus counts the executions of each status that are kept. It asks every
// shard, in one round trip: for people and their monitoring, not for every event.
func (s *Store) CountByStatus(ctx context.Context) (map[engine.Status]int64, error) {
	pipe := s.client.Pipeline()
	type count struct {
		status engine.Status
		cmd    *redis.IntCmd
	}
	var counts []count
	for n := range s.keys {
		for _, status := range statuses {
			counts = append(counts, count{status, pipe.ZCard(ctx, s.keys[n].index[status])})
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, wrap(err, "count executions")
	}
	out := map[engine.Status]int64{}
	for _, c := range counts {
		out[c.status] += c.cmd.Val()
	}
	return out, nil
}
