package crashtest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// healed is how long what a dead coordinator owed others may take after another is
// there: until the sweeper comes, and then some for the work itself.
const healed = sweepAfter + sweepAfter/5 + 4*time.Second

// put stores a workflow.
func (c *cluster) put(document []byte) {
	c.t.Helper()
	_, err := c.conn.PutWorkflow(c.t.Context(), queue.WorkflowPutRequest{Document: document})
	require.NoError(c.t, err)
}

// subworkflow is a node that runs a stored workflow and waits for its end.
func subworkflow(name, id string) object {
	return node(name, "n8n-nodes-base.executeWorkflow", 1.2, object{
		"source": "database", "workflowId": object{"__rl": true, "mode": "id", "value": id}, "options": object{},
	})
}

func childTrigger() object {
	return node("Called", "n8n-nodes-base.executeWorkflowTrigger", 1.1, object{"inputSource": "passthrough"})
}

// family stores the workflow "child" and returns one that runs it.
func (c *cluster) family() (parent []byte) {
	c.put(document("child", nil, []object{
		childTrigger(), c.ledger.step("Work"),
		node("Reply", "n8n-nodes-base.set", 3.4, object{"mode": "raw", "jsonOutput": `={{ { "order": $("Called").first().json.order, "by": $execution.id } }}`, "options": object{}}),
	}, "Called -> Work", "Work -> Reply"))
	return document("parent", nil, []object{trigger(), subworkflow("Call", "child"), c.ledger.step("After")},
		"Start -> Call", "Call -> After")
}

// list are all executions of a workflow.
func (c *cluster) list(workflowID string) []queue.Execution {
	c.t.Helper()
	answer, err := c.conn.List(c.t.Context(), queue.ListRequest{WorkflowID: workflowID, Limit: 100})
	require.NoError(c.t, err)
	require.Empty(c.t, answer.Cursor)
	return answer.Executions
}

// startDoomed starts a coordinator that dies at a failpoint, and the workers.
func (c *cluster) startDoomed(point string) {
	c.t.Helper()
	c.coordinators[0].start(point)
	for _, w := range c.workers {
		w.start("")
	}
	for _, p := range append([]*process{c.coordinators[0]}, c.workers...) {
		p.awaitReady()
	}
	c.connectOnly()
}

// succeed waits for the death of the doomed coordinator, starts another that dies
// at the failpoint too, then one that lives, and returns when that works.
func (c *cluster) succeed(point string) time.Time {
	c.t.Helper()
	c.coordinators[0].awaitExit()
	c.coordinators[1].start(point)
	c.coordinators[1].awaitExit()
	c.coordinators[0].start("")
	c.coordinators[0].awaitReady()
	return time.Now()
}

// Report 54: the only coordinator is killed before or after it has started a child, or
// before or after it has told the parent how the child ended, and so is the one that
// tries it next. A third, which knows nothing, wakes the parent, once, within the time of
// the sweep.
func TestCoordinatorKilledBetweenParentAndChild(t *testing.T) {
	for _, point := range []string{"before-start-child", "after-start-child", "before-tell-parent", "after-tell-parent"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			c := startClusterOf(t, 1)
			c.startDoomed(point + "=2")
			parent := c.family()
			ids := newIDs(3)
			submitted := make(chan struct{})
			go func() {
				defer close(submitted)
				for i, id := range ids {
					c.begin([]string{id}, queue.Submission{Workflow: parent, Input: workflow.Items{{JSON: fmt.Appendf(nil, `{"order":%d}`, i)}}})
				}
			}()
			back := c.succeed(point)
			<-submitted
			children := map[engine.ExecutionID]bool{}
			for i, id := range ids {
				x := c.finished(id)
				require.Equal(t, engine.StatusSuccess, x.Status, "%s", x.Data)
				late := time.UnixMilli(x.StoppedAt).Sub(back)
				require.Less(t, late, healed, "%s ended late", id)
				t.Logf("%s ended %s after the other coordinator was there", id, late.Round(time.Millisecond))
				for _, name := range []string{"Start", "Call", "After"} {
					require.Len(t, x.records[name], 1, "%s: runs of %s", id, name)
				}
				child := c.childOf(x, "Call")
				children[child] = true
				require.JSONEq(t, fmt.Sprintf(`{"order":%d,"by":%q}`, i, child), x.output(t, "Call"))
				y := c.finished(string(child))
				require.Equal(t, engine.StatusSuccess, y.Status)
				require.Equal(t, engine.ExecutionID(id), y.Parent)
			}
			for _, x := range c.list("child") {
				require.True(t, children[x.ID], "%s is nobody's child", x.ID)
			}
			require.Len(t, children, len(ids))
			c.ledger.check(t, ids, []string{"After"}, never)
			for id, times := range c.ledger.executionsOf("Work") {
				require.True(t, children[engine.ExecutionID(id)], "%s is nobody's child", id)
				require.Equal(t, 1, times, "Work of %s", id)
			}
			c.nothingLeft()
		})
	}
}

// One of two coordinators dies while families are under way: all of them end well.
func TestCoordinatorKilledAmongFamilies(t *testing.T) {
	for _, point := range []string{"before-commit=8", "after-commit=8", "before-settle=2"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			c := startClusterOf(t, 1)
			c.coordinators[1].start("")
			c.coordinators[1].awaitReady()
			c.startDoomed(point)
			parent := c.family()
			ids := newIDs(12)
			c.begin(ids, queue.Submission{Workflow: parent, Input: workflow.Items{{JSON: []byte(`{"order":1}`)}}})
			c.coordinators[0].awaitExit()
			c.coordinators[0].start("")
			for _, id := range ids {
				x := c.finished(id)
				require.Equal(t, engine.StatusSuccess, x.Status, "%s", x.Data)
				child := c.childOf(x, "Call")
				require.JSONEq(t, fmt.Sprintf(`{"order":1,"by":%q}`, child), x.output(t, "Call"))
				require.Len(t, x.records["After"], 1)
				require.Equal(t, 1, c.ledger.executionsOf("Work")[string(child)])
			}
			c.nothingLeft()
			require.Len(t, c.ledger.executionsOf("Work"), len(ids))
			require.Len(t, c.list("child"), len(ids))
			c.ledger.check(t, ids, []string{"After"}, never)
		})
	}
}

// childOf is the execution that a node of another one has run.
func (c *cluster) childOf(x *run, name string) engine.ExecutionID {
	c.t.Helper()
	require.Len(c.t, x.records[name], 1, "%s: runs of %s", x.ID, name)
	metadata := x.records[name][0].Metadata
	require.NotNil(c.t, metadata)
	require.NotNil(c.t, metadata.SubExecution)
	return metadata.SubExecution.ExecutionID
}

// The coordinator that has cancelled an execution is killed before it has told the
// child, and so is the next: a third cancels that, and what it has started itself.
func TestCoordinatorKilledBeforeItCancelsTheChild(t *testing.T) {
	t.Parallel()
	c := startClusterOf(t, 1)
	c.startDoomed("before-cancel-orphan")
	c.put(document("leaf", nil, []object{childTrigger(), c.ledger.step("Work"), c.ledger.step("More")}, "Called -> Work", "Work -> More"))
	c.put(document("middle", nil, []object{childTrigger(), subworkflow("Call", "leaf"), c.ledger.step("After")}, "Called -> Call", "Call -> After"))
	top := document("top", nil, []object{trigger(), subworkflow("Call", "middle"), c.ledger.step("After")}, "Start -> Call", "Call -> After")
	arrived, open := c.ledger.hold("Work")
	ids := newIDs(1)
	c.begin(ids, queue.Submission{Workflow: top})
	var leaf string
	select {
	case leaf = <-arrived:
	case <-time.After(within):
		c.dump()
		t.Fatal("the grandchild's node was not called")
	}
	middle := string(c.becomes(leaf, "running", func(x *run) bool { return x.Parent != "" }).Parent)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	_ = c.conn.Cancel(ctx, engine.ExecutionID(ids[0]), "enough") // the answer may die with the coordinator
	cancel()
	back := c.succeed("before-cancel-orphan")
	for _, id := range []string{ids[0], middle, leaf} {
		x := c.finished(id)
		require.Equal(t, engine.StatusCanceled, x.Status, "%s", id)
		late := time.UnixMilli(x.StoppedAt).Sub(back)
		require.Less(t, late, healed, "%s was cancelled late", id)
	}
	open()
	c.nothingLeft()
	for _, id := range []string{ids[0], middle, leaf} {
		require.Equal(t, engine.StatusCanceled, c.finished(id).Status, "%s stays cancelled", id)
	}
	require.Empty(t, c.ledger.executionsOf("More"))
	require.Empty(t, c.ledger.executionsOf("After"))
}
