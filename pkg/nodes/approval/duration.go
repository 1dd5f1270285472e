package approval

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-engine/reprise/pkg/node"
)

// durationPart is a number and its unit at the start of a text.
var durationPart = regexp.MustCompile(`^\s*([0-9]+(?:\.[0-9]+)?)\s*([smhdw])`)

var units = map[string]time.Duration{
	"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour,
}

// ParseDuration reads "20s", "2h", "3d" or "1d12h": numbers with the units s, m, h, d (24
// hours) and w. What is not greater than 0 is an error.
func ParseDuration(text string) (time.Duration, error) {
	total, rest := 0.0, text
	for strings.TrimSpace(rest) != "" {
		found := durationPart.FindStringSubmatch(rest)
		if found == nil {
			return 0, fmt.Errorf("%q is no duration; want one such as 20s, 2h, 3d or 1d12h", text)
		}
		number, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			return 0, fmt.Errorf("duration %q: %w", text, err)
		}
		total += number * float64(units[found[2]])
		rest = rest[len(found[0]):]
	}
	switch {
	case total < 1:
		return 0, fmt.Errorf("%q is no duration; want one that is longer than nothing, such as 20s, 2h or 3d", text)
	case total >= math.MaxInt64:
		return 0, fmt.Errorf("duration %q is too long; leave it empty to wait without end", text)
	}
	return time.Duration(total), nil
}

// until reads a parameter with a duration that begins now; zero when it is
// empty.
func until(ctx context.Context, call *node.Call, path string) (time.Time, error) {
	text, err := call.String(ctx, 0, path, "")
	if err != nil || strings.TrimSpace(text) == "" {
		return time.Time{}, err
	}
	d, err := ParseDuration(text)
	if err != nil {
		failure := operationError("The parameter "+path+" of "+call.Node.Name+" is wrong: "+err.Error(), "")
		return time.Time{}, failure
	}
	return call.Now().Add(d), nil
}
