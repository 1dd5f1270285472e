package faulttest

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/cluster"
	"github.com/reprise-engine/reprise/pkg/engine"
)

// Report 86: three workers are restarted one after the other under load. None takes a
// job after the signal, what runs finishes, and no execution fails.
func TestReport86RollingRestart(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{Lease: calm})
	for _, tool := range c.Tools {
		c.Ledger.Answer(tool, cluster.Takes(300*time.Millisecond))
	}
	c.StartAll()
	stop := make(chan struct{})
	var ids []string
	var load sync.WaitGroup
	load.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
				ids = append(ids, c.Submit(2)...)
			}
		}
	})
	for _, w := range c.Workers {
		w.Terminate()
		w.AwaitExit(within)
		require.NotContains(t, w.Log(), "job handed back", "what runs finishes in time")
		c.Start(w)
	}
	close(stop)
	load.Wait()
	require.NotEmpty(t, ids)
	c.Settled(ids, within, cluster.Once)
}

// Report 82: fifty tools answer in the same millisecond, five of them with an error, while
// the coordinator that owns the execution is stopped: the Agent goes on exactly once, with
// all fifty answers.
func TestReport82FiftyToolsAtOnce(t *testing.T) {
	t.Parallel()
	tools := make([]string, 50)
	for i := range tools {
		tools[i] = fmt.Sprintf("T%02d", i)
	}
	c := cluster.New(t, cluster.Options{Lease: calm, Tools: tools, Concurrency: 32})
	c.Start(append([]*cluster.Process{c.Coordinators[0]}, c.Workers...)...)
	arrived, release := make(chan string, 100), make(chan struct{})
	for i, tool := range tools {
		c.Ledger.Answer(tool, func(call cluster.Call) int {
			arrived <- call.Tool
			select {
			case <-release:
			case <-call.Gone.Done():
			}
			if i%10 == 3 {
				return http.StatusInternalServerError
			}
			return http.StatusOK
		})
	}
	ids := c.Submit(1)
	for range tools {
		select {
		case <-arrived:
		case <-time.After(within):
			t.Fatal("not all tools were called")
		}
	}
	c.Start(c.Coordinators[1])
	c.Coordinators[0].Pause()
	close(release)
	took := c.AwaitFinished(ids, within)
	recovered(t, c, "owner paused, 50 tools answer at once", "execution finished", took, 20*time.Second)
	c.Coordinators[0].Continue()
	c.Idle(within)
	states, err := c.Look(ids...)
	require.NoError(t, err)
	s := states[0]
	require.Equal(t, engine.StatusSuccess, s.Meta.Status, "%+v", s.Meta.Error)
	require.Equal(t, 1, s.Runs("AI Agent"), "one run of the Agent")
	require.Equal(t, 2, s.Runs("Model"), "the Agent went on once")
	failed := 0
	for _, tool := range tools {
		require.Equal(t, 1, s.Runs(tool))
		require.Len(t, c.Ledger.Keys(ids[0], tool), 1)
		if s.Run[tool][0].Error != nil {
			failed++
		}
	}
	require.Equal(t, 5, failed)
	answer := cluster.Output(s, "AI Agent")
	for _, tool := range tools {
		require.Equal(t, 1, strings.Count(answer, tool+" returned"), "answer of %s: %s", tool, answer)
	}
}

// Reports 71, 72 and 105: a tool kills its worker each time. After the delivery limit
// there is a dead letter and an error for the Agent; nothing stays on the stream, and other
// executions end well. Every tool of theirs was called under one key.
func TestReport71ToolThatKillsItsWorkers(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{Workers: 4}) // one more than the delivery limit
	c.StartAll()
	for _, tool := range c.Tools {
		c.Ledger.Answer(tool, cluster.Takes(300*time.Millisecond))
	}
	killed := make(chan string, 10)
	c.Ledger.Answer("Bomb", func(call cluster.Call) int {
		for _, w := range c.Workers {
			if w.Running() && owns(w.PID(), call.Caller) {
				w.Kill()
				killed <- w.Name
			}
		}
		<-call.Gone.Done()
		return http.StatusOK
	})
	bomb := c.SubmitOf(c.Ledger.Chain("bomb", "Bomb"), 1)
	ids := c.Submit(10)
	c.AwaitFinished(append(bomb, ids...), within)
	require.Len(t, killed, 3, "as many workers died as the delivery limit says")
	states, err := c.Look(bomb...)
	require.NoError(t, err)
	record := states[0].Run["Bomb"][0]
	require.NotNil(t, record.Error)
	require.Equal(t, engine.ReasonWorkerLost, record.Error.Reason)
	letters, err := c.Conn.DeadLetters(t.Context(), engine.ExecutionID(bomb[0]), 0)
	require.NoError(t, err)
	require.Len(t, letters, 1)
	require.Equal(t, "Bomb", letters[0].Node)
	require.Equal(t, 0, letters[0].RunIndex)
	keys := c.Ledger.Keys(bomb[0], "Bomb")
	require.Len(t, keys, 3)
	require.Equal(t, []string{keys[0], keys[0], keys[0]}, keys)
	c.Settled(ids, within, cluster.Repeated)
}

// owns reports whether a process has the connection from a local address.
func owns(pid int, addr string) bool {
	_, port, _ := strings.Cut(addr, ":")
	n, err := strconv.Atoi(port)
	if err != nil {
		return false
	}
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return false
	}
	local := fmt.Sprintf("0100007F:%04X", n)
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) < 10 || fields[1] != local {
			continue
		}
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, file := range files {
			if target, _ := os.Readlink(file); target == "socket:["+fields[9]+"]" {
				return true
			}
		}
	}
	return false
}

// Report 62: a node that may not be repeated, as its workflow says, is not run again
// when its worker died in the middle: its outcome is unknown, and that is told.
func TestReport62NotRepeated(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{Workers: 2})
	c.Start(append(append([]*cluster.Process{}, c.Coordinators...), c.Workers[0])...)
	arrived, open := c.Ledger.Hold("Pay")
	step := c.Ledger.Step("Pay")
	step["onWorkerLost"] = "giveUp"
	ids := c.SubmitOf(cluster.Document("pay", nil, []cluster.Object{cluster.Trigger(), step}, "Start -> Pay"), 1)
	arrives(t, arrived, 1)
	c.Start(c.Workers[1])
	c.Workers[0].Kill()
	took := c.AwaitFinished(ids, within)
	recovered(t, c, "worker killed, node not repeatable", "execution says so", took, recoveryLimit)
	open()
	c.Idle(within)
	require.Len(t, c.Ledger.Keys(ids[0], "Pay"), 1, "it was not called again")
	states, err := c.Look(ids...)
	require.NoError(t, err)
	require.Equal(t, engine.StatusError, states[0].Meta.Status)
	require.Equal(t, engine.ReasonWorkerLost, states[0].Meta.Error.Reason)
}
