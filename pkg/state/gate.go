package state

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// A gate bounds how many executions of a workflow are unfinished at once. Those that
// hold a place may run; the others wait in a queue, first in first out. It is beside the
// executions, in another slot, so it can be behind them or ahead: whoever uses it compares
// it with the executions, and every call can be repeated.

// GateOp is what a GateCall does.
type GateOp int

// The operations on a gate.
const (
	// GateEnter gives the execution a place, or else one in the queue. One that is in the gate
	// already stays where it is.
	GateEnter GateOp = iota
	// GateHold makes sure that an execution which has begun holds a place, even beyond
	// the limit.
	GateHold
	// GateLeave takes the execution out, wherever it is, and gives free places to the heads of
	// the queue. Without an execution it does only that.
	GateLeave
)

// GateCall is one operation on one gate.
type GateCall struct {
	Op GateOp
	// Gate is the workflow's id, or its hash.
	Gate      string
	Execution engine.ExecutionID
	// Limit of places, of GateEnter and GateHold; the last GateEnter sets the gate's.
	Limit int
	// At is now, in ms.
	At int64
	// Line, of GateEnter, are executions that wait for this one. When one of them holds a place the
	// execution needs none: otherwise both would wait for ever.
	Line []engine.ExecutionID
}

// GateAnswer is what became of a GateCall.
type GateAnswer struct {
	// Position in the queue after GateEnter, from 1; 0 is admitted.
	Position int
	// Exempt: admitted without a place, for the sake of its Line.
	Exempt bool
	// Next, of GateLeave, are the executions that were given a place and have to be told,
	// also those that were given one more than gateRecall ago and did not begin since.
	Next []engine.ExecutionID
	Err  error // ErrFull (GateEnter and GateHold only), or why Redis could not be asked
}

// gateRecall is how long an execution may take from its place to its GateHold, in ms, before
// GateLeave names it again.
const gateRecall = 2000

// gatePage bounds the executions that one GateLeave admits, or names.
const gatePage = 1000

// gateEnterScript is GateEnter. It begins with a write that a full Redis refuses.
//
//	KEYS  1 in; 2 queue; 3 gates   ARGV  1 execution   2 limit   3 now   4 gate   5- line
//	reply position, 0 for a place, -1 for none needed
var gateEnterScript = newScript(`
local call = redis.call
for i = 5, #ARGV do
  if call('ZSCORE', KEYS[1], ARGV[i]) then return -1 end
end
call('HSET', KEYS[3], ARGV[4], ARGV[2])
if call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
local rank = call('ZRANK', KEYS[2], ARGV[1])
if rank then return rank + 1 end
local last = call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')
if not last[1] and call('ZCARD', KEYS[1]) < tonumber(ARGV[2]) then
  call('ZADD', KEYS[1], ARGV[3], ARGV[1])
  return 0
end
call('ZADD', KEYS[2], (tonumber(last[2]) or 0) + 1, ARGV[1])
return call('ZCARD', KEYS[2])
`)

// gateHoldScript is GateHold.
//
//	KEYS  1 in; 2 queue; 3 gates   ARGV  1 execution   2 limit   3 now   4 gate
var gateHoldScript = newScript(`
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('HSETNX', KEYS[3], ARGV[4], ARGV[2])
return 0
`)

// gateLeaveScript is GateLeave. It begins with a removal, to be let through by a full
// Redis: otherwise no end of an execution would make room in the gate.
//
//	KEYS  1 in; 2 queue; 3 gates   ARGV  1 execution or ""   2 called before this (ms) are named again   3 now   4 gate   5 page
//	reply executions to be told
var gateLeaveScript = newScript(`
local call = redis.call
call('ZREM', KEYS[1], ARGV[1])
call('ZREM', KEYS[2], ARGV[1])
local limit = tonumber(call('HGET', KEYS[3], ARGV[4])) or 1
local next = call('ZRANGEBYSCORE', KEYS[1], '-' .. ARGV[2], '(0', 'LIMIT', 0, ARGV[5])
local room = math.min(limit - call('ZCARD', KEYS[1]), tonumber(ARGV[5]))
if room > 0 then
  for _, id in ipairs(call('ZRANGE', KEYS[2], 0, room - 1)) do
    call('ZREM', KEYS[2], id)
    call('ZADD', KEYS[1], '-' .. ARGV[3], id)
    next[#next + 1] = id
  end
end
if call('EXISTS', KEYS[1], KEYS[2]) == 0 then call('HDEL', KEYS[3], ARGV[4]) end
return next
`)

// Gate does operations on gates in one round trip, those of one gate in order. The
// result has an answer per call.
func (s *Store) Gate(ctx context.Context, calls []GateCall) []GateAnswer {
	answers := make([]GateAnswer, len(calls))
	cmds := make([]*redis.Cmd, 0, len(calls))
	at := make([]int, 0, len(calls))
	for i := range calls {
		c := &calls[i]
		if err := checkGate(c); err != nil {
			answers[i].Err = err
			continue
		}
		cmds, at = append(cmds, s.gateCall(ctx, c)), append(at, i)
	}
	s.run(ctx, cmds)
	for j, cmd := range cmds {
		c, a := &calls[at[j]], &answers[at[j]]
		switch c.Op {
		case GateLeave:
			ids, err := cmd.StringSlice()
			a.Err = wrap(err, "leave the gate of workflow %s with execution %s", c.Gate, c.Execution)
			for _, id := range ids {
				a.Next = append(a.Next, engine.ExecutionID(id))
			}
		default:
			position, err := cmd.Int()
			a.Err = wrap(err, "enter the gate of workflow %s with execution %s", c.Gate, c.Execution)
			a.Position, a.Exempt = max(position, 0), position < 0
		}
	}
	return answers
}

func checkGate(c *GateCall) error {
	if c.Op != GateLeave || c.Execution != "" {
		if err := checkID(c.Execution); err != nil {
			return fmt.Errorf("gate of workflow %s: %w", c.Gate, err)
		}
	}
	if c.Gate == "" || c.Op != GateLeave && c.Limit < 1 {
		return fmt.Errorf("gate of workflow %q with limit %d: a name and at least one place are required", c.Gate, c.Limit)
	}
	return nil
}

func (s *Store) gateCall(ctx context.Context, c *GateCall) *redis.Cmd {
	keys := s.gateKeys(c.Gate)
	now := strconv.FormatInt(c.At, 10)
	args := []any{string(c.Execution), c.Limit, now, c.Gate}
	switch c.Op {
	case GateHold:
		return gateHoldScript.call(ctx, keys, args)
	case GateLeave:
		args[1] = strconv.FormatInt(max(c.At-gateRecall, 1), 10)
		return gateLeaveScript.call(ctx, keys, append(args, gatePage))
	}
	for _, id := range c.Line {
		args = append(args, string(id))
	}
	return gateEnterScript.call(ctx, keys, args)
}

func (s *Store) gatesKey(shard int) string { return fmt.Sprintf("%s:{w%03d}:gates", s.prefix, shard) }

// gateKeys are the keys of a gate, as its scripts take them.
func (s *Store) gateKeys(gate string) []string {
	shard := ShardOf(gate)
	base := fmt.Sprintf("%s:{w%03d}:gate:%s", s.prefix, shard, gate)
	return []string{base + ":in", base + ":queue", s.gatesKey(shard)}
}

// Gate is a gate that has anybody.
type Gate struct {
	Name  string
	Limit int
	// Queued is the length of its queue.
	Queued int
	// In are those with a place, the ones called from the queue first; at most 1000.
	In []GatePlace
}

// GatePlace is a place that is taken.
type GatePlace struct {
	Execution engine.ExecutionID
	Since     int64 // ms
	// Called from the queue, and nobody has said that it began.
	Called bool
	// Status of the execution, "" when it is not there.
	Status engine.Status
}

// Gates lists the gates that have anybody, with the executions that hold places. Without gates it
// is one command, on a Redis Cluster one round trip of small reads.
func (s *Store) Gates(ctx context.Context) ([]Gate, error) {
	if empty, err := s.noneExists(ctx, s.gatesKey); empty || err != nil {
		return nil, wrap(err, "list gates")
	}
	pipe := s.client.Pipeline()
	var limits [Shards]*redis.MapStringStringCmd
	for n := range limits {
		limits[n] = pipe.HGetAll(ctx, s.gatesKey(n))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, wrap(err, "list gates")
	}
	var gates []Gate
	for _, c := range limits {
		for name, limit := range c.Val() {
			n, _ := strconv.Atoi(limit)
			gates = append(gates, Gate{Name: name, Limit: n})
		}
	}
	if len(gates) == 0 {
		return nil, nil
	}
	pipe = s.client.Pipeline()
	in, queued := make([]*redis.ZSliceCmd, len(gates)), make([]*redis.IntCmd, len(gates))
	for i := range gates {
		keys := s.gateKeys(gates[i].Name)
		in[i], queued[i] = pipe.ZRangeWithScores(ctx, keys[0], 0, gatePage-1), pipe.ZCard(ctx, keys[1])
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, wrap(err, "read gates")
	}
	pipe = s.client.Pipeline()
	var statuses []*redis.StringCmd
	for i := range gates {
		gates[i].Queued = int(queued[i].Val())
		for _, z := range in[i].Val() {
			id, _ := z.Member.(string)
			since := int64(z.Score)
			gates[i].In = append(gates[i].In, GatePlace{Execution: engine.ExecutionID(id), Since: max(since, -since), Called: since < 0})
			statuses = append(statuses, pipe.HGet(ctx, s.shard(engine.ExecutionID(id)).table(engine.ExecutionID(id), engine.TableMeta), fieldStatus))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil && !errNil(err) {
		return nil, wrap(err, "read the executions of gates")
	}
	for i := range gates {
		for j := range gates[i].In {
			status := statuses[0]
			statuses = statuses[1:]
			if err := status.Err(); err != nil && !errNil(err) {
				return nil, wrap(err, "read the executions of gates")
			}
			gates[i].In[j].Status = engine.Status(status.Val())
		}
	}
	return gates, nil
}

// GatePosition is an execution's position in the queue of a gate, from 1; 0 when it is not there.
func (s *Store) GatePosition(ctx context.Context, gate string, id engine.ExecutionID) (int, error) {
	rank, err := s.client.ZRank(ctx, s.gateKeys(gate)[1], string(id)).Result()
	if errNil(err) {
		return 0, nil
	}
	if err != nil {
		return 0, wrap(err, "position of execution %s in the queue of workflow %s", id, gate)
	}
	return int(rank) + 1, nil
}

// maxLine bounds how far Line goes up.
const maxLine = 100

// Line returns an execution's parent, the parent's parent and so on, as far as each waits for the
// one before; parent is the first.
func (s *Store) Line(ctx context.Context, parent engine.ExecutionID) ([]engine.ExecutionID, error) {
	var line []engine.ExecutionID
	for id := parent; id != "" && len(line) < maxLine; {
		line = append(line, id)
		value, err := s.client.HGet(ctx, s.shard(id).table(id, engine.TableMeta), engine.OriginField).Result()
		if errNil(err) {
			break
		}
		if err != nil {
			return nil, wrap(err, "read what started execution %s", id)
		}
		origin, err := engine.ReadOrigin([]byte(value))
		if err != nil {
			return nil, fmt.Errorf("read what started execution %s: %w", id, err)
		}
		if origin.Detached {
			break
		}
		id = origin.Parent
	}
	return line, nil
}

// Turn reports whether it is the caller's turn to do what several processes would do at
// the same interval: the first one that asks in an interval gets it.
func (s *Store) Turn(ctx context.Context, name string, interval int64) (bool, error) {
	key := s.prefix + ":turn:" + name
	err := s.client.Do(ctx, "SET", key, "1", "NX", "PX", interval).Err()
	if errNil(err) {
		return false, nil
	}
	return err == nil, wrap(err, "ask for the turn of %s", name)
}
