package mail

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/reprise-engine/reprise/pkg/node"
)

var waitUnits = map[string]time.Duration{
	"seconds": time.Second, "minutes": time.Minute, "hours": time.Hour, "days": 24 * time.Hour,
}

// moments are the ways in which a date and time may be written; without a zone it is in
// the workflow's.
var moments = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02",
}

// limit reads options.limitWaitTime, until when a question may be answered; zero is
// without end.
func limit(ctx context.Context, call *node.Call) (time.Time, error) {
	const values = "options.limitWaitTime.values"
	if call.Raw(values) == nil {
		return time.Time{}, nil
	}
	kind, err := call.String(ctx, 0, values+".limitType", "afterTimeInterval")
	if err != nil {
		return time.Time{}, err
	}
	var end time.Time
	switch kind {
	case "afterTimeInterval":
		end, err = afterInterval(ctx, call, values)
	case "atSpecifiedTime":
		end, err = atMoment(ctx, call, values+".maxDateAndTime")
	default:
		err = operationError(fmt.Sprintf("The limit type %q is not known here; want afterTimeInterval or atSpecifiedTime", kind), "parameter "+values+".limitType")
	}
	if err == nil && !end.After(call.Now()) {
		err = operationError("The time limit of the question is over before it is asked", "parameter "+values)
	}
	return end, err
}

func afterInterval(ctx context.Context, call *node.Call, values string) (time.Time, error) {
	amount := 1.0
	if err := call.ParamInto(ctx, 0, values+".resumeAmount", &amount); err != nil {
		return time.Time{}, err
	}
	name, err := call.String(ctx, 0, values+".resumeUnit", "hours")
	if err != nil {
		return time.Time{}, err
	}
	unit, ok := waitUnits[name]
	if !ok {
		return time.Time{}, operationError(fmt.Sprintf("%q is no unit of time here; want minutes, hours or days", name), "parameter "+values+".resumeUnit")
	}
	length := amount * float64(unit)
	if !(length > 0 && length < math.MaxInt64) {
		return time.Time{}, operationError(fmt.Sprintf("%v %s cannot be waited", amount, name), "parameter "+values+".resumeAmount")
	}
	return call.Now().Add(time.Duration(length)), nil
}

func atMoment(ctx context.Context, call *node.Call, path string) (time.Time, error) {
	text, err := call.String(ctx, 0, path, "")
	if err != nil {
		return time.Time{}, err
	}
	for _, layout := range moments {
		if moment, err := time.ParseInLocation(layout, text, zone(call)); err == nil {
			return moment, nil
		}
	}
	return time.Time{}, operationError(fmt.Sprintf("%q is no date and time; want one such as 2026-12-24T18:00:00", text), "parameter "+path)
}

// zone is the workflow's time zone, UTC when it has none.
func zone(call *node.Call) *time.Location {
	if location, err := time.LoadLocation(call.Workflow.Timezone); err == nil {
		return location
	}
	return time.UTC
}
