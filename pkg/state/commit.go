package state

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// Commit is one atomic write to one execution: what one or several steps of the
// engine changed.
type Commit struct {
	Execution engine.ExecutionID
	// Version the changes were made on; 0 creates the execution. After success
	// the execution is at Version+1.
	Version uint64
	// Token names this change, and is the same whenever it is sent again: a change
	// that was applied already answers success. Up to 64 bytes (16 random ones are
	// plenty, each is stored). Empty: one is drawn, which covers lost replies within the call.
	Token string
	// Changes in order; the last one of a field wins.
	Changes []engine.Change
	// Timers in order; the last one of an id wins.
	Timers []engine.TimerChange
	// Questions to people that were asked at At (ms), or are over when At is 0; the ID
	// is the token of the wait. In order, the last one of an id wins. See Store.Questions.
	Questions []engine.TimerChange
	// Status after the changes.
	Status engine.Status
	// Finished ends the execution for good: its keys get their expiry. It is
	// implied by a finished Status.
	Finished bool
	// Quiet has a commit that finishes the execution leave no trace of it but its id: it is in no list,
	// and its keys expire after a few minutes, in which its id cannot be used again.
	Quiet bool
	// Unsettled keeps a commit that finishes the execution from ending its sweeps, as
	// others are still to be told of the end: ClaimStale hands it out, from NextSweep
	// on, until Settle is called. It means nothing while the execution goes on.
	Unsettled bool
	// At is the time of the commit in ms.
	At int64
	// NextSweep is when the sweeper shall look at the execution unless it moved
	// again, in ms; 0 leaves it as it was, and for a new or an unsettled one is At.
	NextSweep int64
	// WorkflowID, WorkflowName and StartedAt are for lists. They are stored when the
	// execution is created; StartedAt 0 is At.
	WorkflowID, WorkflowName string
	StartedAt                int64
	// StoppedAt is stored when the execution finishes; 0 is At.
	StoppedAt int64
}

// Answers of the commit script.
const (
	commitApplied  = 1
	commitReplayed = 2
	commitConflict = 3
	commitExists   = 4
	commitNotFound = 5
	commitFinished = 6
)

// commitScript writes one commit.
//
//	KEYS  1-4 meta, stack, run, open; 5 active; 6 timers; 7 index:running; 8 index:waiting; 9 index:new;
//	      when it creates or finishes also 10 finished; 11 index:success; 12 index:error; 13 index:canceled;
//	      when questions change the last one is questions
//	ARGV  1 version expected, "0" creates   2 execution   3 token   4 token field of the next version
//	      5 status   6 next sweep, "" leaves it or, when it finishes, is none
//	      7 expiry in ms, "" is unfinished   8 startedAt   9 stoppedAt, "" when it finishes is a quiet end
//	      10-13 number of strings that set fields of meta, stack, run, open (field, value, …)
//	      14-17 number of fields to delete in each   18 strings of timers to set (at, member, …)   19 timers to clear
//	      20-   all those strings in this order
//	      when questions change, after them: number of strings to set (at, token, …), tokens to clear, those strings
//	reply one of the commit… numbers
//
// What creates or continues an execution writes with HSET first, so that a full
// Redis refuses it before anything is changed. What ends one begins with ZREM,
// which lets the rest through (see the package comment). Field lists are cut: Lua
// cannot unpack more than some thousand values.
var commitScript = newScript(`
local call = redis.call
local have = call('HMGET', KEYS[1], '~v', '~s', '~st')
local version, status = have[1], have[2]
local creates = ARGV[1] == '0'
if version then
  if version ~= ARGV[1] then
    local seen = call('HMGET', KEYS[1], '~t0', '~t1', '~t2', '~t3', '~t4', '~t5', '~t6', '~t7')
    for i = 1, 8 do
      if seen[i] == ARGV[3] then return 2 end
    end
    if creates then return 4 end
    return 3
  end
  if status ~= 'running' and status ~= 'waiting' and status ~= 'new' then return 6 end
elseif not creates then
  return 5
end

local id, finishes = ARGV[2], ARGV[7] ~= ''
local quiet = finishes and ARGV[9] == ''
if finishes and not creates then call('ZREM', KEYS[5], id) end

local at = 20
local function run(command, key, count)
  local stop = at + count
  while at < stop do
    local last = math.min(at + 999, stop - 1)
    call(command, key, unpack(ARGV, at, last))
    at = last + 1
  end
end
for i = 10, 19 do
  local count = tonumber(ARGV[i])
  if count > 0 then
    if i < 14 then run('HSET', KEYS[i - 9], count)
    elseif i < 18 then run('HDEL', KEYS[i - 13], count)
    elseif i == 18 then run('ZADD', KEYS[6], count)
    else run('ZREM', KEYS[6], count) end
  end
end
if ARGV[at] then
  local set, clear = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  at = at + 2
  run('ZADD', KEYS[#KEYS], set)
  run('ZREM', KEYS[#KEYS], clear)
end

if creates then
  -- An execution of this id may have been here and expired.
  call('ZREM', KEYS[10], id)
  for i = 11, 13 do call('ZREM', KEYS[i], id) end
end
if status ~= ARGV[5] then
  local index = {running = KEYS[7], waiting = KEYS[8], new = KEYS[9], success = KEYS[11], error = KEYS[12], canceled = KEYS[13]}
  if status then call('ZREM', index[status], id) end
  if not quiet then call('ZADD', index[ARGV[5]], have[3] or ARGV[8], id) end
end
if finishes then
  if not quiet then call('ZADD', KEYS[10], ARGV[9], id) end
  for i = 1, 4 do call('PEXPIRE', KEYS[i], ARGV[7]) end
end
if ARGV[6] ~= '' then
  call('ZADD', KEYS[5], ARGV[6], id)
elseif finishes and creates then
  call('ZREM', KEYS[5], id) -- what an expired one of this id may have left
end
return 1
`)

// Commit writes the changes of several executions, some dozens at best, in one
// round trip. The result has an error per commit, in the same order: nil,
// ErrConflict, ErrExists, ErrNotFound, ErrFinished, ErrFull, or why Redis could
// not be asked; in the last case a commit may have been applied or not, and is to
// be repeated with the same Token. Each commit is atomic, together they are not.
// Commits of the same execution are applied in order. Values are not kept.
func (s *Store) Commit(ctx context.Context, commits []Commit) []error {
	if len(commits) == 0 {
		return nil
	}
	errs := make([]error, len(commits))
	calls := make([]*redis.Cmd, 0, len(commits))
	at := make([]int, 0, len(commits)) // index in commits of each call
	for i := range commits {
		call, err := s.commitCall(ctx, &commits[i])
		if err != nil {
			errs[i] = fmt.Errorf("commit execution %s: %w", commits[i].Execution, err)
			continue
		}
		calls, at = append(calls, call), append(at, i)
	}
	s.run(ctx, calls)
	for j, call := range calls {
		c := &commits[at[j]]
		s.noteDues(c)
		if err := s.commitResult(call); err != nil {
			errs[at[j]] = fmt.Errorf("commit execution %s at version %d: %w", c.Execution, c.Version, err)
		}
	}
	return errs
}

// quietMemory is how long the id of an execution is known that ended quietly.
const quietMemory = 10 * time.Minute

// noteDues notes what a commit has set, whether it was applied or not: its reply may be
// lost, and what is noted too much costs one reading.
func (s *Store) noteDues(c *Commit) {
	shard := ShardOf(string(c.Execution))
	for _, t := range c.Timers {
		if t.At != 0 {
			s.timers.note(shard, t.At)
		}
	}
	switch {
	case c.NextSweep != 0:
		s.sweeps.note(shard, c.NextSweep)
	case c.Version == 0, c.Unsettled:
		s.sweeps.note(shard, c.At)
	}
}

func (s *Store) commitResult(call *redis.Cmd) error {
	code, err := call.Int()
	if err != nil {
		err = classify(err)
		if errors.Is(err, ErrFull) {
			s.count.full.Add(1)
		}
		return err
	}
	switch code {
	case commitApplied:
		s.count.commits.Add(1)
		return nil
	case commitReplayed:
		s.count.replays.Add(1)
		return nil
	case commitConflict:
		s.count.conflicts.Add(1)
		return ErrConflict
	case commitExists:
		return ErrExists
	case commitNotFound:
		return ErrNotFound
	case commitFinished:
		return ErrFinished
	default:
		return fmt.Errorf("unknown answer %d of the commit script", code)
	}
}

// commitCall builds the script call of a commit.
func (s *Store) commitCall(ctx context.Context, c *Commit) (*redis.Cmd, error) {
	if err := checkID(c.Execution); err != nil {
		return nil, err
	}
	k := s.shard(c.Execution)
	if k.index[c.Status] == "" {
		return nil, fmt.Errorf("status %q cannot be stored", c.Status)
	}
	finishes := c.Status.Finished()
	if c.Finished && !finishes {
		return nil, fmt.Errorf("finished, but with the status %q", c.Status)
	}
	if len(c.Token) > 64 {
		return nil, fmt.Errorf("token of %d bytes: at most 64", len(c.Token))
	}
	f, err := fieldsOf(c.Changes, c.Version == 0)
	if err != nil {
		return nil, err
	}
	token := c.Token
	if token == "" {
		token = rand.Text()
	}
	next := c.Version + 1
	tokenField := tokenFields[next%tokens]
	f.set(metaTable, fieldVersion, strconv.FormatUint(next, 10))
	f.set(metaTable, fieldStatus, string(c.Status))
	f.set(metaTable, tokenField, token)
	if len(c.Changes) > 0 && c.At > 0 {
		f.set(metaTable, fieldMoved, strconv.FormatInt(c.At, 10))
	}
	started, stopped, sweep, expiry := "", "", "", ""
	if c.Version == 0 {
		started = milliseconds(c.StartedAt, c.At)
		sweep = milliseconds(c.NextSweep, c.At)
		f.set(metaTable, fieldStarted, started)
		if c.WorkflowID != "" {
			f.set(metaTable, fieldWorkflowID, c.WorkflowID)
		}
		if c.WorkflowName != "" {
			f.set(metaTable, fieldWorkflowName, c.WorkflowName)
		}
	} else if c.NextSweep != 0 {
		sweep = strconv.FormatInt(c.NextSweep, 10)
	}
	if finishes {
		sweep = ""
		if c.Unsettled {
			sweep = milliseconds(c.NextSweep, c.At)
		}
		stopped = milliseconds(c.StoppedAt, c.At)
		expiry = strconv.FormatInt(s.config.Retention.Milliseconds(), 10)
		f.set(metaTable, fieldStopped, stopped)
		if c.Quiet {
			stopped, expiry = "", strconv.FormatInt(min(quietMemory, s.config.Retention).Milliseconds(), 10)
		}
	}
	set, clear := scoresOf(c.Timers, func(timer string) string { return timerMember(c.Execution, timer) })

	keys := make([]string, 0, 14)
	for _, t := range tables {
		keys = append(keys, k.table(c.Execution, t))
	}
	keys = append(keys, k.active, k.timers, k.index[engine.StatusRunning], k.index[engine.StatusWaiting], k.index[engine.StatusNew])
	if c.Version == 0 || finishes {
		keys = append(keys, k.finished, k.index[engine.StatusSuccess], k.index[engine.StatusError], k.index[engine.StatusCanceled])
	}
	args := make([]any, 0, 19+f.len()+len(set)+len(clear))
	args = append(args, strconv.FormatUint(c.Version, 10), string(c.Execution), token, tokenField,
		string(c.Status), sweep, expiry, started, stopped)
	for i := range f.sets {
		args = append(args, len(f.sets[i]))
	}
	for i := range f.deletes {
		args = append(args, len(f.deletes[i]))
	}
	args = append(args, len(set), len(clear))
	for i := range f.sets {
		args = append(args, f.sets[i]...)
	}
	for i := range f.deletes {
		args = append(args, f.deletes[i]...)
	}
	args = append(append(args, set...), clear...)
	if len(c.Questions) > 0 {
		set, clear := scoresOf(c.Questions, func(token string) string { return token })
		keys = append(keys, k.questions)
		args = append(args, len(set), len(clear))
		args = append(append(args, set...), clear...)
	}
	return commitScript.call(ctx, keys, args), nil
}

// milliseconds writes at, or otherwise when it is 0.
func milliseconds(at, otherwise int64) string {
	if at == 0 {
		at = otherwise
	}
	return strconv.FormatInt(at, 10)
}
