package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

const (
	// othersTimeout bounds how long a run that is over waits for what it started.
	othersTimeout = 30 * time.Second
	othersLook    = 50 * time.Millisecond
)

// awaitOthers waits until no other execution runs on servers that end with this
// program, and names those that did not end before x: detached sub-executions and
// error workflows. failure says that an error workflow is about to start.
func awaitOthers(cmd *cobra.Command, conn *queue.Conn, x *queue.Execution, failure bool) {
	ctx, cancel := context.WithTimeout(cmd.Context(), othersTimeout)
	defer cancel()
	ticker := time.NewTicker(othersLook)
	defer ticker.Stop()
	out := cmd.ErrOrStderr()
	for {
		others, err := otherExecutions(ctx, conn, x)
		running, begun := 0, !failure
		for i := range others {
			if goesOn(ctx, conn, &others[i]) {
				running++
			}
			begun = begun || others[i].Mode == modeError
		}
		if err == nil && running == 0 && begun {
			for i := range others {
				fmt.Fprintln(out, otherText(&others[i]))
			}
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			fmt.Fprintf(out, "not awaited: %d executions that this one started, they end with this program\n", running)
			return
		}
	}
}

// goesOn reports whether an execution will go on by itself within othersTimeout.
func goesOn(ctx context.Context, conn *queue.Conn, o *queue.Execution) bool {
	if o.Status != engine.StatusWaiting {
		return !o.Status.Finished()
	}
	x, err := conn.Get(ctx, o.ID, false)
	if err != nil || x.Status != engine.StatusWaiting {
		return true // look again
	}
	return slices.ContainsFunc(x.Waiting, func(w queue.Waiting) bool {
		return w.Kind == engine.WaitTime && time.UnixMilli(w.Until).Before(time.Now().Add(othersTimeout))
	})
}

// modeError is the mode of the executions of error workflows.
const modeError = "error"

// hasErrorWorkflow reports whether the failure of w starts another workflow: the one
// its settings name, or itself when it has an error trigger.
func hasErrorWorkflow(w *workflow.Workflow, docs []document) bool {
	if id := w.Settings.ErrorWorkflow; id != "" && id != "DEFAULT" {
		for _, d := range docs {
			if d.id == id {
				return hasErrorTrigger(d.workflow)
			}
		}
		return false
	}
	return hasErrorTrigger(w)
}

func hasErrorTrigger(w *workflow.Workflow) bool {
	for _, n := range w.Nodes {
		if n.Type == "n8n-nodes-base.errorTrigger" && !n.Disabled {
			return true
		}
	}
	return false
}

// otherExecutions are those that did not end before x.
func otherExecutions(ctx context.Context, conn *queue.Conn, x *queue.Execution) ([]queue.Execution, error) {
	var others []queue.Execution
	for r := (queue.ListRequest{Limit: listPage}); ; {
		page, err := conn.List(ctx, r)
		if err != nil {
			return nil, err
		}
		for _, o := range page.Executions {
			if o.ID != x.ID && (o.StoppedAt == 0 || o.StoppedAt > x.StoppedAt) {
				others = append(others, o)
			}
		}
		if page.Cursor == "" {
			return others, nil
		}
		r.Cursor = page.Cursor
	}
}

// otherText names an execution and says how it ended.
func otherText(x *queue.Execution) string {
	name := x.WorkflowName
	if name == "" {
		name = "(unnamed workflow)"
	}
	text := fmt.Sprintf("also ran: %s  %s  %s", name, x.Status, x.ID)
	if x.Error != nil {
		text += ": " + shorten(x.Error.Message, 160)
	}
	if x.Status == engine.StatusWaiting {
		text += "; it is lost when this program ends"
	}
	return text
}
