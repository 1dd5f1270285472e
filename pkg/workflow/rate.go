package workflow

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Rate is a limit such as "100/minute": at most Count in any span of length Per. The
// zero value is no limit.
type Rate struct {
	Count int
	Per   time.Duration
}

// maxRate bounds Rate.Count: so many moments are remembered for a limit.
const maxRate = 100_000

// ParseRate reads a rate: a number, a slash, and second, minute, hour or day, or a duration
// such as 10s. "" is no limit.
func ParseRate(text string) (Rate, error) {
	if strings.TrimSpace(text) == "" {
		return Rate{}, nil
	}
	count, per, ok := strings.Cut(text, "/")
	n, err := strconv.Atoi(strings.TrimSpace(count))
	if !ok || err != nil || n < 1 || n > maxRate {
		return Rate{}, fmt.Errorf("%q is no rate; want a number from 1 to %d and a time, such as 5/second, 100/minute or 20/10s", text, maxRate)
	}
	r := Rate{Count: n}
	switch per = strings.ToLower(strings.TrimSpace(per)); per {
	case "s", "sec", "second":
		r.Per = time.Second
	case "m", "min", "minute":
		r.Per = time.Minute
	case "h", "hour":
		r.Per = time.Hour
	case "d", "day":
		r.Per = 24 * time.Hour
	default:
		r.Per, err = time.ParseDuration(per)
		if err != nil || r.Per < 100*time.Millisecond || r.Per > 31*24*time.Hour {
			return Rate{}, fmt.Errorf("%q: %q is no time; want second, minute, hour, day, or a duration from 100ms to 744h such as 10s", text, per)
		}
	}
	return r, nil
}

// The values of Settings.Priority, and of a submission's. "" is PriorityNormal.
const (
	PriorityHigh   = "high"
	PriorityNormal = "normal"
	PriorityLow    = "low"
)

// KnownPriority reports whether a text is a priority; "" is one.
func KnownPriority(text string) bool {
	switch text {
	case "", PriorityHigh, PriorityNormal, PriorityLow:
		return true
	}
	return false
}

// limits reports what of the settings cannot be read.
func (v *validator) limits() {
	s := v.w.Settings
	if !KnownPriority(s.Priority) {
		v.report(SeverityError, "", "settings.priority", "%q is none of %s, %s, %s", s.Priority, PriorityHigh, PriorityNormal, PriorityLow)
	}
	if _, err := ParseRate(s.RateLimit); err != nil {
		v.report(SeverityError, "", "settings.rateLimit", "%v", err)
	}
}

func (v *validator) nodeLimits(n *Node) {
	if _, err := ParseRate(n.RateLimit); err != nil {
		v.report(SeverityError, n.Name, "rateLimit", "%v", err)
	}
}
