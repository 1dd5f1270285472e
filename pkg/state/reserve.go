package state

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Reservation asks for a moment under a rate limit: at most Count holders in any span
// of length Per.
type Reservation struct {
	// Limit names what is limited, Holder who wants a moment: asked again it gets the
	// same one.
	Limit, Holder string
	Count         int
	Per           time.Duration
}

// reserveMemory is how long after its moment a reservation is still known.
const reserveMemory = time.Hour

// reserveScript gives out the next moment of a limit: the Count moments before it are
// kept in a ring, and it comes at least Per after the oldest of them. All coordinators
// go by the clock of Redis.
//
//	KEYS  1 ring (hash: n, 0 … count-1)   2 the holder's moment
//	ARGV  1 count   2 per in ms   3 how long the moment is remembered after it, in ms
//	reply milliseconds until the moment, 0 for now
//
// It sets before it changes anything else, so a full Redis refuses it whole.
var reserveScript = newScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local held = redis.call('GET', KEYS[2])
if held then return math.max(0, tonumber(held) - now) end
local count, per = tonumber(ARGV[1]), tonumber(ARGV[2])
local have = redis.call('HMGET', KEYS[1], 'n', 'count')
local n = tonumber(have[1]) or 0
if have[2] and tonumber(have[2]) ~= count then
  -- The limit was changed: begin anew after the moments that were given out.
  local last = tonumber(redis.call('HGET', KEYS[1], 'last')) or now
  redis.call('DEL', KEYS[1])
  n = 0
  redis.call('HSET', KEYS[1], 'last', last)
end
local at = now
local last = tonumber(redis.call('HGET', KEYS[1], 'last'))
if last and last > at then at = last end
local oldest = tonumber(redis.call('HGET', KEYS[1], n % count))
if oldest and oldest + per > at then at = oldest + per end
local wait = at - now
redis.call('SET', KEYS[2], string.format('%.0f', at), 'PX', string.format('%.0f', wait + tonumber(ARGV[3])))
local moment = string.format('%.0f', at)
redis.call('HSET', KEYS[1], n % count, moment, 'n', string.format('%.0f', n + 1), 'count', count, 'last', moment)
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', wait + per + 60000))
return wait
`)

// Reserve gives each of them its moment, as the time from now until then (0 is now), in one
// round trip. Moments of a limit are given out in the order in which they are asked
// for, and are not given back. A holder that asks again gets the moment it had, for an hour
// after it. ErrFull and ErrUnavailable as everywhere; then those that got none may ask again.
func (s *Store) Reserve(ctx context.Context, wanted []Reservation) ([]time.Duration, error) {
	calls := make([]*redis.Cmd, len(wanted))
	for i, r := range wanted {
		if r.Limit == "" || r.Holder == "" || r.Count < 1 || r.Per < time.Millisecond {
			return nil, errors.New("reserve: limit, holder, count and span are required")
		}
		ring := s.limitKey(r.Limit)
		calls[i] = reserveScript.call(ctx, []string{ring, ring + ":" + r.Holder}, []any{r.Count, r.Per.Milliseconds(), reserveMemory.Milliseconds()})
	}
	s.run(ctx, calls)
	waits := make([]time.Duration, len(wanted))
	for i, call := range calls {
		wait, err := call.Int64()
		if err != nil {
			return nil, wrap(err, "reserve a moment of limit %s", wanted[i].Limit)
		}
		waits[i] = time.Duration(wait) * time.Millisecond
	}
	return waits, nil
}

// limitKey is the ring of a limit; the moments of its holders are beside it.
func (s *Store) limitKey(limit string) string {
	return fmt.Sprintf("%s:{l%03d}:limit:%s", s.prefix, ShardOf(limit), limit)
}
