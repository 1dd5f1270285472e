package faulttest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/cluster"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// failpoints of the sources of a package, sorted.
func failpoints(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
	require.NoError(t, err)
	call := regexp.MustCompile(`failpoint\.Hit\("([^"]+)"\)`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, match := range call.FindAllSubmatch(text, -1) {
			names = append(names, string(match[1]))
		}
	}
	slices.Sort(names)
	require.NotEmpty(t, names)
	return slices.Compact(names)
}

// Reports 63, 76 and 79: a coordinator is killed at each of its failpoints, while it
// does what leads there, and another one goes on. No event is lost or applied twice.
func TestCoordinatorKilledAtEachFailpoint(t *testing.T) {
	// What leads to each failpoint.
	scenarios := map[string]func(*testing.T, string){
		"before-commit": killedInAgent, "after-commit": killedInAgent, "after-publish": killedInAgent, "after-ack": killedInAgent,
		"before-start-child": killedInFamily, "after-start-child": killedInFamily,
		"before-tell-parent": killedInFamily, "after-tell-parent": killedInFamily,
		"before-errands": killedInFamily, "before-settle": killedInFamily,
		"before-cancel-orphan":        killedInCancel,
		"before-start-error-workflow": killedInFailure, "after-start-error-workflow": killedInFailure,
		"after-enter-gate": killedAtGate, "before-leave-gate": killedAtGate, "after-leave-gate": killedAtGate,
	}
	// Those that every execution passes, which the short run kills at: internal/crashtest
	// has most of the others.
	common := []string{"before-commit", "after-commit", "after-publish", "after-ack"}
	for _, point := range failpoints(t, "coordinator") {
		scenario := scenarios[point]
		require.NotNil(t, scenario, "nothing here leads to failpoint %s: say what does", point)
		moments := []int{3}
		switch often := slices.Contains(common, point); {
		case often && *full:
			moments = []int{1, 3, 6}
		case !often && *full:
			moments = []int{1}
		case !often:
			continue
		}
		for _, nth := range moments {
			at := fmt.Sprintf("%s=%d", point, nth)
			t.Run(at, func(t *testing.T) {
				t.Parallel()
				scenario(t, at)
			})
		}
	}
}

// startDoomed starts all processes, the first coordinator with a failpoint.
func startDoomed(c *cluster.Cluster, at string) {
	c.Coordinators[0].Start(at)
	for _, p := range c.Processes()[1:] {
		p.Start("")
	}
	c.AwaitReady(c.Processes()...)
}

// submitUntilExit submits executions until a process has come to its failpoint. How many that
// takes depends on which process each of them comes to.
func submitUntilExit(c *cluster.Cluster, p *cluster.Process, submit func() []string) (ids []string) {
	for range 5 {
		ids = append(ids, submit()...)
		if p.Exits(5 * time.Second) {
			return ids
		}
	}
	p.AwaitExit(within)
	return ids
}

func killedInAgent(t *testing.T, at string) {
	c := cluster.New(t, cluster.Options{Lease: calm})
	startDoomed(c, at)
	ids := submitUntilExit(c, c.Coordinators[0], func() []string { return c.Submit(10) })
	c.Settled(ids, within, cluster.Once)
}

func subworkflow(name, id string) cluster.Object {
	return cluster.Node(name, "n8n-nodes-base.executeWorkflow", 1.2, cluster.Object{
		"source": "database", "workflowId": cluster.Object{"__rl": true, "mode": "id", "value": id}, "options": cluster.Object{},
	})
}

func called() cluster.Object {
	return cluster.Node("Called", "n8n-nodes-base.executeWorkflowTrigger", 1.1, cluster.Object{"inputSource": "passthrough"})
}

func put(t *testing.T, c *cluster.Cluster, document []byte) {
	t.Helper()
	_, err := c.Conn.PutWorkflow(t.Context(), queue.WorkflowPutRequest{Document: document})
	require.NoError(t, err)
}

// statuses checks how executions ended.
func statuses(t *testing.T, c *cluster.Cluster, ids []string, want engine.Status) {
	t.Helper()
	states, err := c.Look(ids...)
	require.NoError(t, err)
	for _, s := range states {
		require.Equal(t, want, s.Meta.Status, "%s: %+v", s.Meta.ID, s.Meta.Error)
	}
}

// children are the executions of a workflow.
func children(t *testing.T, c *cluster.Cluster, workflow string) (ids []string) {
	t.Helper()
	answer, err := c.Conn.List(t.Context(), queue.ListRequest{WorkflowID: workflow, Limit: 100})
	require.NoError(t, err)
	for _, x := range answer.Executions {
		ids = append(ids, string(x.ID))
	}
	return ids
}

// family stores a workflow that is called, and returns one that calls it.
func family(t *testing.T, c *cluster.Cluster) []byte {
	put(t, c, cluster.Document("child", nil, []cluster.Object{called(), c.Ledger.Step("Work")}, "Called -> Work"))
	return cluster.Document("parent", nil, []cluster.Object{cluster.Trigger(), subworkflow("Call", "child"), c.Ledger.Step("After")},
		"Start -> Call", "Call -> After")
}

func killedInFamily(t *testing.T, at string) {
	c := cluster.New(t, cluster.Options{Lease: calm, Workers: 1})
	startDoomed(c, at)
	parent := family(t, c)
	ids := submitUntilExit(c, c.Coordinators[0], func() []string { return c.SubmitOf(parent, 6) })
	c.AwaitFinished(ids, within)
	c.Idle(within)
	statuses(t, c, ids, engine.StatusSuccess)
	begun := children(t, c, "child")
	require.Len(t, begun, len(ids), "each parent has one child")
	for _, id := range begun {
		require.Len(t, c.Ledger.Keys(id, "Work"), 1)
	}
	for _, id := range ids {
		require.Len(t, c.Ledger.Keys(id, "After"), 1)
	}
}

func killedInCancel(t *testing.T, at string) {
	c := cluster.New(t, cluster.Options{Lease: calm, Workers: 1, Coordinators: 1})
	c.Coordinators[0].Start(at)
	c.Workers[0].Start("")
	c.AwaitReady(c.Processes()...)
	arrived, open := c.Ledger.Hold("Work")
	ids := c.SubmitOf(family(t, c), 1)
	arrives(t, arrived, 1)
	child := children(t, c, "child")
	require.Len(t, child, 1)
	_ = c.Conn.Cancel(t.Context(), engine.ExecutionID(ids[0]), "no longer needed") // its answer may die with the coordinator
	c.Coordinators[0].AwaitExit(within)
	c.Start(c.Coordinators[0])
	both := append(child, ids...)
	c.AwaitFinished(both, within)
	open()
	c.Idle(within)
	statuses(t, c, both, engine.StatusCanceled)
}

func killedInFailure(t *testing.T, at string) {
	c := cluster.New(t, cluster.Options{Lease: calm, Workers: 1, Coordinators: 1})
	c.Coordinators[0].Start(at)
	c.Workers[0].Start("")
	c.AwaitReady(c.Processes()...)
	put(t, c, cluster.Document("alarm", nil, []cluster.Object{
		cluster.Node("Trigger", "n8n-nodes-base.errorTrigger", 1, cluster.Object{}), c.Ledger.Step("Alarm"),
	}, "Trigger -> Alarm"))
	c.Ledger.Answer("Fails", func(cluster.Call) int { return 400 })
	ids := c.SubmitOf(cluster.Document("failing", cluster.Object{"errorWorkflow": "alarm"},
		[]cluster.Object{cluster.Trigger(), c.Ledger.Step("Fails")}, "Start -> Fails"), 1)
	c.Coordinators[0].AwaitExit(within)
	c.Start(c.Coordinators[0])
	alarm := ids[0] + "-error"
	c.AwaitFinished([]string{ids[0], alarm}, within)
	c.Idle(within)
	statuses(t, c, ids, engine.StatusError)
	statuses(t, c, []string{alarm}, engine.StatusSuccess)
	require.Equal(t, []string{alarm}, children(t, c, "alarm"), "the error workflow ran once")
	require.Len(t, c.Ledger.Keys(alarm, "Alarm"), 1)
}

// killedAtGate: executions of a workflow with a limit wait for their turn, and each gets
// it. There is one coordinator: of two, one might admit them all.
func killedAtGate(t *testing.T, at string) {
	c := cluster.New(t, cluster.Options{Lease: calm, Workers: 1, Coordinators: 1})
	startDoomed(c, at)
	limited := cluster.Document("limited", cluster.Object{"maxConcurrency": 2},
		[]cluster.Object{cluster.Trigger(), c.Ledger.Step("Work")}, "Start -> Work")
	restarted := make(chan struct{})
	go func() { // a supervisor
		defer close(restarted)
		c.Coordinators[0].AwaitExit(within)
		c.Coordinators[0].Start("")
	}()
	ids := c.SubmitOf(limited, 8)
	<-restarted
	c.AwaitFinished(ids, within)
	c.Idle(within)
	statuses(t, c, ids, engine.StatusSuccess)
	for _, id := range ids {
		require.Len(t, c.Ledger.Keys(id, "Work"), 1)
	}
}

// Reports 58, 63 and 68: a worker is killed at each of its failpoints; what it had in
// its hands is run again under the same key, all else is not.
func TestWorkerKilledAtEachFailpoint(t *testing.T) {
	moments := []int{4}
	if *full {
		moments = []int{1, 3, 8}
	}
	for _, point := range failpoints(t, "worker") {
		for _, nth := range moments {
			at := fmt.Sprintf("%s=%d", point, nth)
			t.Run(at, func(t *testing.T) {
				t.Parallel()
				c := cluster.New(t, cluster.Options{})
				for _, p := range c.Processes() {
					if p == c.Workers[0] {
						p.Start(at)
					} else {
						p.Start("")
					}
				}
				c.AwaitReady(c.Processes()...)
				ids := submitUntilExit(c, c.Workers[0], func() []string { return c.Submit(12) })
				c.Settled(ids, within, cluster.Repeated)
			})
		}
	}
}
