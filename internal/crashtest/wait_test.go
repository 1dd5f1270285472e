package crashtest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// promptly is how soon something must go on once everything is there again, as the failure
// contract promises. What was lost between the servers takes a lease or a sweep of it.
const promptly = 10 * time.Second

// appendOnly has redis-server keep what it has acknowledged.
var appendOnly = []string{"--appendonly", "yes"}

func wait(seconds int) object {
	return node("Wait", "n8n-nodes-base.wait", 1.1, object{"amount": seconds, "unit": "seconds"})
}

// Reports 88 and 89: a wait whose moment passes while everything that could resume it is dead goes on as
// soon as that is back; one whose moment is yet to come goes on then. There is one
// record of the wait, and what was before it is not run again. The same holds for
// what waits for an execution that waits.
func TestWaitsOutliveWhatIsKilled(t *testing.T) {
	for name, kill := range map[string]func(c *cluster) (restart func()){
		"coordinators_and_workers": func(c *cluster) func() {
			c.killProcesses()
			return c.startProcesses
		},
		"servers": func(c *cluster) func() {
			c.redis.Kill()
			c.nats.Kill()
			return func() { c.redis.Restart(c.t); c.nats.Restart() }
		},
		"everything": func(c *cluster) func() {
			c.killProcesses()
			c.nats.Kill()
			c.redis.Kill()
			return func() { c.redis.Restart(c.t); c.nats.Restart(); c.startProcesses() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startClusterOf(t, 1, appendOnly...)
			c.startAll()
			flow := func(seconds int) []byte {
				return document("w", nil, []object{trigger(), c.ledger.step("Before"), wait(seconds), c.ledger.step("After")},
					"Start -> Before", "Before -> Wait", "Wait -> After")
			}
			c.put(document("child", nil, []object{childTrigger(), c.ledger.step("Work"), wait(4)}, "Called -> Work", "Work -> Wait"))
			parent := document("parent", nil, []object{trigger(), subworkflow("Call", "child"), c.ledger.step("Later")}, "Start -> Call", "Call -> Later")
			short, long, parents := newIDs(5), newIDs(2), newIDs(2)
			c.begin(parents, queue.Submission{Workflow: parent})
			c.begin(long, queue.Submission{Workflow: flow(9)})
			c.begin(short, queue.Submission{Workflow: flow(4)})
			ids := append(append([]string{}, short...), long...)
			until := map[string]time.Time{}
			for _, id := range ids {
				w := c.waits(id)
				require.Equal(t, engine.WaitTime, w.Kind)
				require.Equal(t, "Wait", w.Node)
				until[id] = time.UnixMilli(w.Until)
			}
			children := map[string]string{} // by their parents
			for _, x := range c.list("child") {
				children[string(x.Parent)] = string(x.ID)
				until[string(x.Parent)] = time.UnixMilli(c.waits(string(x.ID)).Until)
			}
			for _, id := range parents {
				require.Equal(t, engine.WaitChildren, c.waits(id).Kind)
				require.NotEmpty(t, children[id], "child of %s", id)
			}
			soon := append(append([]string{}, short...), parents...)
			restart := kill(c)
			for _, id := range soon {
				require.True(t, time.Now().Before(until[id]), "the wait of %s must not end before all is dead: this machine is too slow", id)
			}
			require.Eventually(t, func() bool {
				for _, id := range soon {
					if time.Now().Before(until[id]) {
						return false
					}
				}
				return true
			}, within, 10*time.Millisecond)
			restart()
			back := time.Now()
			for _, id := range append(soon, long...) {
				x := c.finished(id)
				require.Equal(t, engine.StatusSuccess, x.Status, "%s", x.Data)
				due := until[id]
				if due.Before(back) {
					due = back
				}
				ended := time.UnixMilli(x.StoppedAt)
				require.False(t, ended.Before(until[id]), "%s ended %s too early", id, until[id].Sub(ended))
				require.Less(t, ended.Sub(due), promptly, "%s was resumed late", id)
				steps := []string{"Start", "Before", "Wait", "After"}
				if child := children[id]; child != "" {
					steps = []string{"Start", "Call", "Later"}
					require.JSONEq(t, `{"done":"Work"}`, x.output(t, "Call"))
					require.Len(t, c.finished(child).records["Wait"], 1)
					c.ledger.check(t, []string{child}, []string{"Work"}, never)
				}
				for _, step := range steps {
					require.Len(t, x.records[step], 1, "%s: runs of %s", id, step)
					require.Equal(t, engine.StatusSuccess, x.records[step][0].Status)
				}
			}
			for _, id := range ids {
				require.JSONEq(t, `{"done":"Before"}`, c.finished(id).output(t, "Wait"))
			}
			c.ledger.check(t, ids, []string{"Before", "After"}, never)
			c.ledger.check(t, parents, []string{"Later"}, never)
			c.nothingLeft()
		})
	}
}
