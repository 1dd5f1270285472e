package faulttest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/cluster"
	"github.com/reprise-engine/reprise/pkg/engine"
)

// oldPrograms are those of another version, built by scripts/upgrade-test.sh.
var oldPrograms = flag.String("old", "", "directory of the coordinator and worker of the version to upgrade from (default: the present one, restarted)")

// waitDocument is a workflow that waits between two effects, for a call or for two seconds.
func waitDocument(c *cluster.Cluster, id string, parameters cluster.Object) []byte {
	parameters["options"] = cluster.Object{}
	return cluster.Document(id, nil, []cluster.Object{
		cluster.Trigger(), c.Ledger.Step("Before"), cluster.Node("Wait", "n8n-nodes-base.wait", 1.1, parameters), c.Ledger.Step("After"),
	}, "Start -> Before", "Before -> Wait", "Wait -> After")
}

func timed(c *cluster.Cluster) []byte {
	return waitDocument(c, "timed", cluster.Object{"resume": "timeInterval", "amount": 2, "unit": "seconds"})
}

func parked(c *cluster.Cluster) []byte {
	return waitDocument(c, "parked", cluster.Object{"resume": "webhook"})
}

// park starts executions that wait for a call.
func park(c *cluster.Cluster, n int) []string {
	ids := c.SubmitOf(parked(c), n)
	c.AwaitStates(ids, within, "waiting", func(s *engine.State) bool { return s.Meta.Status == engine.StatusWaiting })
	return ids
}

// load submits Agents, and workflows that wait for a moment, until it is told to stop. It pauses while
// underWay of them run: a machine that is too slow for more is not what the tests are about.
type load struct {
	agents, waits []string
	stop          func()
}

const underWay = 40

func loaded(t *testing.T, c *cluster.Cluster, pause time.Duration) *load {
	l := &load{}
	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			if counts, err := c.Store.CountByStatus(t.Context()); err == nil && counts[engine.StatusRunning] < underWay {
				l.agents = append(l.agents, c.Submit(2)...)
				l.waits = append(l.waits, c.SubmitOf(timed(c), 1)...)
			}
			select {
			case <-ended:
				return
			case <-time.After(pause):
			}
		}
	})
	l.stop = sync.OnceFunc(func() { close(ended); wg.Wait() })
	return l
}

// All coordinators and workers are replaced by those of another version under load, one after the
// other, and then back. Executions run on whatever is there, also those that waited meanwhile:
// each ends well, and has its effects once. Without -old it is a restart of all processes.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	current := cluster.Programs(t)
	old := *oldPrograms
	if old == "" {
		old = current
	} else {
		for _, name := range []string{"coordinator", "worker"} {
			before, err := os.ReadFile(filepath.Join(old, name))
			require.NoError(t, err)
			after, err := os.ReadFile(filepath.Join(current, name))
			require.NoError(t, err)
			require.NotEqual(t, before, after, "%s is the same program in both versions", name)
		}
	}
	c := cluster.New(t, cluster.Options{Lease: calm, Programs: old})
	for _, tool := range c.Tools {
		c.Ledger.Answer(tool, cluster.Takes(200*time.Millisecond))
	}
	c.StartAll()
	byOld := park(c, 5)
	under := loaded(t, c, 100*time.Millisecond)
	defer under.stop()
	replace := func(version string, processes ...*cluster.Process) {
		for _, p := range processes {
			p.Terminate()
			p.AwaitExit(within)
			p.Use(version)
			c.Start(p)
		}
	}
	resumeAll := func(ids []string) {
		for _, id := range ids {
			require.NoError(t, resume(t, c, id))
		}
		c.AwaitFinished(ids, within)
	}

	replace(current, c.Coordinators...)
	byBoth := park(c, 3) // new coordinators, old workers
	replace(current, c.Workers...)
	resumeAll(byOld)
	byNew := park(c, 5)

	replace(old, c.Workers...)
	replace(old, c.Coordinators...)
	resumeAll(append(byBoth, byNew...))
	under.stop()

	c.AwaitFinished(under.waits, within)
	c.Settled(under.agents, within, cluster.Once)
	rest := append(append(append(byOld, byBoth...), byNew...), under.waits...)
	statuses(t, c, rest, engine.StatusSuccess)
	for _, id := range rest {
		require.Len(t, c.Ledger.Keys(id, "Before"), 1, id)
		require.Len(t, c.Ledger.Keys(id, "After"), 1, id)
	}
	letters, err := c.Conn.DeadLetters(t.Context(), "", 0)
	require.NoError(t, err)
	require.Empty(t, letters)
	fmt.Printf("rolling upgrade and rollback: %d executions, each ended well with its effects once\n", len(under.agents)+len(rest))
}
