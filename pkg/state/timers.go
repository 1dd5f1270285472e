package state

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// Due is a timer that was claimed.
type Due struct {
	Execution engine.ExecutionID
	Timer     string
	// At is the time it was due at, in ms. A timer whose earlier claim ran out has
	// the end of that claim here.
	At int64
	// Claim is the end of this claim, in ms: the timer comes up again then, unless it
	// is cleared by a commit or dropped.
	Claim int64
}

// timerMember names a timer in its shard. Execution ids hold no "|".
func timerMember(id engine.ExecutionID, timer string) string { return string(id) + "|" + timer }

// claimScript takes members of a sorted set that are due and puts them off, so
// that nobody else takes them. Nothing is due before it is by the server's clock, whatever the
// caller's says: one that is ahead would take from others what they are at work on. It begins with a
// removal, of nothing, to be admitted at maxmemory (see the package comment).
//
//	KEYS  1 the set   ARGV  1 now   2 claimed until   3 limit
//	reply member, score, member, score, …
var claimScript = newScript(`
local clock = redis.call('TIME')
local now = math.min(tonumber(ARGV[1]), clock[1] * 1000 + math.floor(clock[2] / 1000))
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%d', now), 'WITHSCORES', 'LIMIT', 0, ARGV[3])
if #due == 0 then return due end
redis.call('ZREM', KEYS[1], '')
for i = 1, #due, 1000 do
  local put = {}
  for j = i, math.min(i + 998, #due), 2 do
    put[#put + 1] = ARGV[2]
    put[#put + 1] = due[j]
  end
  redis.call('ZADD', KEYS[1], unpack(put))
end
return due
`)

// ClaimTimers takes up to limit timers that are due at now (ms) and puts them
// off until claimUntil, so that of several callers one gets each. The commit
// that clears or sets the timer ends the claim; if there is none, because the caller
// died, the timer is due again at claimUntil. A claim whose reply was lost waits
// for that too. A timer that another Store has set, whose process died before it was due,
// is found within Config.LookEvery.
func (s *Store) ClaimTimers(ctx context.Context, now, claimUntil int64, limit int) ([]Due, error) {
	members, err := s.claim(ctx, timerSets, s.timers, now, claimUntil, limit)
	if err != nil {
		return nil, wrap(err, "claim timers")
	}
	due := make([]Due, 0, len(members))
	for _, m := range members {
		execution, timer, ok := strings.Cut(m.name, "|")
		if ok {
			due = append(due, Due{engine.ExecutionID(execution), timer, m.at, claimUntil})
		}
	}
	return due, nil
}

// ClaimStale takes up to limit unfinished or unsettled executions whose NextSweep
// has come at now (ms) and puts it off to next. What others have stored is found within
// Config.LookEvery. An unsettled one may have expired
// meanwhile: Load gives nil for it, and Settle ends its sweeps.
func (s *Store) ClaimStale(ctx context.Context, now, next int64, limit int) ([]engine.ExecutionID, error) {
	members, err := s.claim(ctx, activeSets, s.sweeps, now, next, limit)
	if err != nil {
		return nil, wrap(err, "claim stale executions")
	}
	ids := make([]engine.ExecutionID, len(members))
	for i, m := range members {
		ids[i] = engine.ExecutionID(m.name)
	}
	return ids, nil
}

type member struct {
	name string
	at   int64
}

// claimRounds bounds how often a claim goes back to shards that had more than
// their share of the limit.
const claimRounds = 4

// sets are the sorted sets of one kind, one in each shard.
type sets func(*shardKeys) string

func timerSets(k *shardKeys) string  { return k.timers }
func activeSets(k *shardKeys) string { return k.active }

// claim looks which shards have something due and claims there: an idle look reads nothing, or
// now and then all shards in one round trip (see dues), without scripts or writes. The limit is
// shared evenly; what some shards leave of theirs goes to those that have more, so that
// one with much to do is not kept waiting by the others.
func (s *Store) claim(ctx context.Context, key sets, known *dues, now, until int64, limit int) ([]member, error) {
	if limit <= 0 {
		return nil, nil
	}
	reading := known.begin(now, s.config.LookEvery)
	if reading.hopeless {
		empty, err := s.noneExists(ctx, func(n int) string { return key(&s.keys[n]) })
		if err != nil {
			return nil, err
		}
		if empty {
			known.end(&reading, nothing)
			return nil, nil
		}
	}
	first, err := s.firsts(ctx, key, reading.shards)
	if err != nil {
		return nil, err
	}
	known.end(&reading, first)
	due := [Shards]bool{}
	for i, n := range reading.shards {
		due[n] = first[i] != none && first[i] <= now
	}
	var shards []int
	start := int(s.turn.Add(1)) // not always the same shards first when limit is short
	for i := range Shards {
		if n := (start + i) % Shards; due[n] {
			shards = append(shards, n)
		}
	}
	// What is first in a shard after a claim is not known: it is read again next time.
	defer func(claimed []int) {
		for _, n := range claimed {
			known.note(n, now)
		}
	}(shards)
	var members []member
	for round := 0; round < claimRounds && err == nil && len(members) < limit && len(shards) > 0; round++ {
		var got []member
		got, shards, err = s.claimOf(ctx, key, shards, now, until, limit-len(members))
		members = append(members, got...)
	}
	if len(members) > 0 {
		return members, nil // also when a shard failed: these are claimed and must not be lost
	}
	return nil, err
}

// claimOf claims up to limit members in one round trip. more are the shards that
// had at least their share.
func (s *Store) claimOf(ctx context.Context, key sets, shards []int, now, until int64, limit int,
) (members []member, more []int, err error) {
	shards = shards[:min(len(shards), limit)]
	calls := make([]*redis.Cmd, len(shards))
	share := func(i int) int {
		n := limit / len(shards)
		if i < limit%len(shards) {
			n++
		}
		return n
	}
	for i, n := range shards {
		calls[i] = claimScript.call(ctx, []string{key(&s.keys[n])}, []any{now, until, share(i)})
	}
	s.run(ctx, calls)
	for i, c := range calls {
		reply, e := c.StringSlice()
		if e != nil {
			err = e
			continue
		}
		for j := 0; j+1 < len(reply); j += 2 {
			members = append(members, member{reply[j], score(reply[j+1])})
		}
		if len(reply) == 2*share(i) {
			more = append(more, shards[i])
		}
	}
	return members, more, err
}

// none is the time of a shard that has nothing.
const none = int64(-1)

// firsts reads the smallest score of a sorted set of each of these shards, in their order.
func (s *Store) firsts(ctx context.Context, key sets, shards []int) ([]int64, error) {
	first := make([]int64, len(shards))
	for i := range first {
		first[i] = none
	}
	if len(shards) == 0 {
		return first, nil
	}
	pipe := s.client.Pipeline()
	cmds := make([]*redis.ZSliceCmd, len(shards))
	for i, n := range shards {
		cmds[i] = pipe.ZRangeWithScores(ctx, key(&s.keys[n]), 0, 0)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	for i, c := range cmds {
		if z := c.Val(); len(z) > 0 {
			first[i] = int64(z[0].Score)
		}
	}
	return first, nil
}

// noneExists reports that a key exists in no shard, with one command. A Redis Cluster cannot
// be asked so: there it is always false.
func (s *Store) noneExists(ctx context.Context, key func(shard int) string) (bool, error) {
	if _, cluster := s.client.(*redis.ClusterClient); cluster {
		return false, nil
	}
	var all [Shards]string
	for n := range all {
		all[n] = key(n)
	}
	there, err := s.client.Exists(ctx, all[:]...).Result()
	return there == 0, err
}

// nothing is the answer of firsts when all shards are empty.
var nothing = func() (first []int64) {
	for range Shards {
		first = append(first, none)
	}
	return first
}()

// allShards are the numbers of all shards.
var allShards = func() (all []int) {
	for n := range Shards {
		all = append(all, n)
	}
	return all
}()

// NextDue returns when the next timer and the next sweep of all shards are
// due, in ms; 0 when there is none. It reads all shards.
func (s *Store) NextDue(ctx context.Context) (timer, sweep int64, err error) {
	for _, what := range []struct {
		key sets
		out *int64
	}{{timerSets, &timer}, {activeSets, &sweep}} {
		first, err := s.firsts(ctx, what.key, allShards)
		if err != nil {
			return 0, 0, wrap(err, "look for the next timer")
		}
		for _, at := range first {
			if at != none && (*what.out == 0 || at < *what.out) {
				*what.out = at
			}
		}
	}
	return timer, sweep, nil
}

// dropScript removes a timer that is still under the given claim.
//
//	KEYS  1 timers   ARGV  1 member   2 end of the claim
var dropScript = newScript(`
local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
if score and tonumber(score) == tonumber(ARGV[2]) then return redis.call('ZREM', KEYS[1], ARGV[1]) end
return 0
`)

// DropTimers removes claimed timers that no commit will clear, as their
// execution is gone or does not know them. One that was set anew since the claim stays.
func (s *Store) DropTimers(ctx context.Context, due []Due) error {
	calls := make([]*redis.Cmd, len(due))
	for i, d := range due {
		calls[i] = dropScript.call(ctx, []string{s.shard(d.Execution).timers}, []any{timerMember(d.Execution, d.Timer), d.Claim})
	}
	s.run(ctx, calls)
	for i, c := range calls {
		if err := c.Err(); err != nil {
			return wrap(err, "drop timer %s of execution %s", due[i].Timer, due[i].Execution)
		}
	}
	return nil
}

// score reads a sorted set's score as milliseconds.
func score(text string) int64 {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return int64(f)
}
