package trigger

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// limiter bounds events of one key: as many as its rate at once, then evenly.
type limiter struct {
	rate workflow.Rate

	mu     sync.Mutex
	recent map[string]*rate.Limiter // those that were asked for since the last turn
	before map[string]*rate.Limiter // and the turn before
	turn   time.Time
}

// newLimiter returns nil, which lets all through, for no rate.
func newLimiter(r workflow.Rate) *limiter {
	if r.Count <= 0 {
		return nil
	}
	return &limiter{rate: r, recent: map[string]*rate.Limiter{}}
}

// maxKeys bounds what is remembered between two turns, so that many addresses do not fill the
// memory: what comes beyond shares one limit.
const maxKeys = 100_000

// allow reports whether one more is within the rate, and if not, in how many seconds.
func (l *limiter) allow(key string, now time.Time) (retrySeconds int, ok bool) {
	if l == nil {
		return 0, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// Whoever was silent for a whole turn has all of its rate again, so it can be forgotten.
	if now.Sub(l.turn) > l.rate.Per {
		l.before, l.recent, l.turn = l.recent, map[string]*rate.Limiter{}, now
	}
	if len(l.recent) >= maxKeys {
		key = ""
	}
	one := l.recent[key]
	if one == nil {
		if one = l.before[key]; one == nil {
			one = rate.NewLimiter(rate.Limit(float64(l.rate.Count)/l.rate.Per.Seconds()), l.rate.Count)
		}
		l.recent[key] = one
	}
	if one.AllowN(now, 1) {
		return 0, true
	}
	wait := time.Duration(float64(l.rate.Per) / float64(l.rate.Count))
	return max(1, int((wait+time.Second-1)/time.Second)), false
}
