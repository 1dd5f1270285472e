// Package moment reads the parameters of nodes that wait: until when, how long, and when to give up.
package moment

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-engine/reprise/pkg/node"
)

// Limit is when a wait gives up, as limitWaitTime and its neighbours say; zero is never.
func Limit(ctx context.Context, call *node.Call) (time.Time, error) {
	limited, err := call.Bool(ctx, 0, "limitWaitTime", false)
	if err != nil || !limited {
		return time.Time{}, err
	}
	return End(ctx, call, "")
}

// End is the moment that limitType and its neighbours tell. at is where these are: "", or a path with
// its dot.
func End(ctx context.Context, call *node.Call, at string) (time.Time, error) {
	kind, err := call.String(ctx, 0, at+"limitType", "afterTimeInterval")
	switch {
	case err != nil:
		return time.Time{}, err
	case kind == "afterTimeInterval":
		return After(ctx, call, at+"resumeAmount", "1", at+"resumeUnit", "hours")
	case kind == "atSpecifiedTime":
		return At(ctx, call, at+"maxDateAndTime")
	}
	return time.Time{}, node.OperationError(-1, fmt.Sprintf("%q is not a limit of a wait", kind),
		"The parameter "+at+"limitType must be afterTimeInterval or atSpecifiedTime.")
}

var units = map[string]time.Duration{
	"seconds": time.Second, "minutes": time.Minute, "hours": time.Hour, "days": 24 * time.Hour,
}

// longest bounds intervals. Nobody waits a hundred years on purpose, and a
// Duration ends at 292.
const longest = 100 * 365 * 24 * time.Hour

// After is the end of an interval that begins now. amount and unit are what the parameters are when they
// are not set.
func After(ctx context.Context, call *node.Call, amountPath, amount, unitPath, unit string) (time.Time, error) {
	amount, err := call.String(ctx, 0, amountPath, amount)
	if err != nil {
		return time.Time{}, err
	}
	if unit, err = call.String(ctx, 0, unitPath, unit); err != nil {
		return time.Time{}, err
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(amount), 64)
	if err != nil || math.IsNaN(n) {
		return time.Time{}, node.OperationError(0, fmt.Sprintf("The wait amount %q is not a number", amount),
			"Set the parameter "+amountPath+" to a number, such as 5.")
	}
	one, ok := units[unit]
	if !ok {
		return time.Time{}, node.OperationError(0, fmt.Sprintf("The wait unit %q is unknown", unit),
			"The parameter "+unitPath+" must be seconds, minutes, hours or days.")
	}
	if n > float64(longest)/float64(one) {
		return time.Time{}, node.OperationError(0, fmt.Sprintf("The wait of %s %s is longer than 100 years", amount, unit),
			"Check the parameters "+amountPath+" and "+unitPath+".")
	}
	return call.Now().Add(time.Duration(max(n, 0) * float64(one))), nil
}

// dateLayouts are the forms of a date that are read, ISO 8601 first. Those without
// an offset are in the workflow's time zone.
var dateLayouts = []string{
	time.RFC3339Nano,
	"2006-01-02T15:04:05.999999999",
	"2006-01-02T15:04Z07:00",
	"2006-01-02T15:04",
	"2006-01-02 15:04:05.999999999Z07:00",
	"2006-01-02 15:04:05.999999999 Z07:00",
	"2006-01-02 15:04:05.999999999",
	"2006-01-02 15:04",
	"2006-01-02",
	"2006-01-02T15:04:05.999999999-0700",
	time.RFC1123Z,
	time.RFC1123,
}

// At reads a parameter that names a point in time. A number is milliseconds
// since 1970.
func At(ctx context.Context, call *node.Call, path string) (time.Time, error) {
	text, err := call.String(ctx, 0, path, "")
	if err != nil {
		return time.Time{}, err
	}
	text = strings.TrimSpace(text)
	zone, err := time.LoadLocation(call.Workflow.Timezone)
	if err != nil {
		return time.Time{}, node.OperationError(-1, fmt.Sprintf("The workflow's time zone %q is unknown", call.Workflow.Timezone),
			"Choose an IANA name, such as Europe/Berlin, in the workflow's settings.")
	}
	for _, layout := range dateLayouts {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return t, nil
		}
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil && len(text) >= 10 && math.Abs(n) < 1e15 {
		return time.UnixMilli(int64(n)), nil
	}
	if text == "" {
		return time.Time{}, node.OperationError(0, "There is no date to wait for", "Set the parameter "+path+".")
	}
	return time.Time{}, node.OperationError(0, fmt.Sprintf("%q is not a date", text),
		"Set the parameter "+path+" to a date in ISO 8601, such as 2030-12-31T18:00:00.")
}
