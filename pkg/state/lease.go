package state

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// leaseMemory is how long the note of a lease is kept that nobody holds.
const leaseMemory = 7 * 24 * time.Hour

// leaseScript takes or keeps a lease, by the clock of Redis.
//
//	KEYS  1 lease (hash: holder, until, note)
//	ARGV  1 holder   2 length in ms   3 "note" to store the next argument   4 note   5 how long the note is kept, in ms
//	reply {1 held or 0, note, ms until it is free}
var leaseScript = newScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local have = redis.call('HMGET', KEYS[1], 'holder', 'until', 'note')
local left = (tonumber(have[2]) or 0) - now
if have[1] and have[1] ~= ARGV[1] and left > 0 then return {0, have[3] or '', left} end
redis.call('HSET', KEYS[1], 'holder', ARGV[1], 'until', string.format('%.0f', now + tonumber(ARGV[2])))
if ARGV[3] == 'note' then
  redis.call('HSET', KEYS[1], 'note', ARGV[4])
  have[3] = ARGV[4]
end
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return {1, have[3] or '', 0}
`)

// releaseScript gives a lease back; its note stays.
//
//	KEYS  1 lease   ARGV  1 holder
var releaseScript = newScript(`
if redis.call('HGET', KEYS[1], 'holder') == ARGV[1] then redis.call('HDEL', KEYS[1], 'holder', 'until') end
return 1
`)

// Lease is the answer to whoever wants to be the only one to do something.
type Lease struct {
	Held bool
	// Note is what the last holder left.
	Note string
	// Free is how long another one still has it, when it is not held.
	Free time.Duration
}

// Lease takes the lease of that name, or keeps it, for a time. Whoever holds it asks again well before
// that is over, and stops what it does when it no longer gets it. note, when not nil, is
// stored for whoever holds it next.
func (s *Store) Lease(ctx context.Context, name, holder string, length time.Duration, note *string) (Lease, error) {
	what, text := "", ""
	if note != nil {
		what, text = "note", *note
	}
	call := leaseScript.call(ctx, []string{s.leaseKey(name)}, []any{holder, length.Milliseconds(), what, text, leaseMemory.Milliseconds()})
	s.run(ctx, []*redis.Cmd{call})
	reply, err := call.Slice()
	if err != nil {
		return Lease{}, wrap(err, "take lease %s", name)
	}
	if len(reply) != 3 {
		return Lease{}, fmt.Errorf("take lease %s: unknown answer of the script", name)
	}
	held, _ := reply[0].(int64)
	kept, _ := reply[1].(string)
	free, _ := reply[2].(int64)
	return Lease{Held: held == 1, Note: kept, Free: time.Duration(free) * time.Millisecond}, nil
}

// Release gives a lease back before its time, if this holder has it.
func (s *Store) Release(ctx context.Context, name, holder string) error {
	call := releaseScript.call(ctx, []string{s.leaseKey(name)}, []any{holder})
	s.run(ctx, []*redis.Cmd{call})
	return wrap(call.Err(), "release lease %s", name)
}
