package mail

import (
	"context"
	"time"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/moment"
)

// limit reads options.limitWaitTime, until when a question may be answered; zero is
// without end.
func limit(ctx context.Context, call *node.Call) (time.Time, error) {
	const values = "options.limitWaitTime.values"
	if call.Raw(values) == nil {
		return time.Time{}, nil
	}
	end, err := moment.End(ctx, call, values+".")
	if err == nil && !end.After(call.Now()) {
		err = operationError("The time limit of the question is over before it is asked", "parameter "+values)
	}
	return end, err
}

// zone is the workflow's time zone, UTC when it has none.
func zone(call *node.Call) *time.Location {
	if location, err := time.LoadLocation(call.Workflow.Timezone); err == nil {
		return location
	}
	return time.UTC
}
