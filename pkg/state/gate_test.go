package state_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/redistest"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/state"
)

type gate struct {
	t     *testing.T
	s     *state.Store
	name  string
	limit int
	now   int64
}

func openGate(t *testing.T, limit int) *gate {
	t.Helper()
	return &gate{t: t, s: open(t, redistest.Start(t).URL()), name: "flow {1}", limit: limit, now: 1_000_000}
}

func (g *gate) do(op state.GateOp, id engine.ExecutionID, line ...engine.ExecutionID) state.GateAnswer {
	g.t.Helper()
	a := g.s.Gate(g.t.Context(), []state.GateCall{{Op: op, Gate: g.name, Execution: id, Limit: g.limit, At: g.now, Line: line}})[0]
	require.NoError(g.t, a.Err)
	return a
}

func (g *gate) enter(id engine.ExecutionID, line ...engine.ExecutionID) int {
	g.t.Helper()
	return g.do(state.GateEnter, id, line...).Position
}

func (g *gate) leave(id engine.ExecutionID) []engine.ExecutionID {
	g.t.Helper()
	return g.do(state.GateLeave, id).Next
}

type ids = []engine.ExecutionID

func TestGateIsFirstInFirstOut(t *testing.T) {
	t.Parallel()
	g := openGate(t, 2)
	require.Equal(t, []int{0, 0, 1, 2, 3}, []int{g.enter("a"), g.enter("b"), g.enter("c"), g.enter("d"), g.enter("e")})
	require.Equal(t, []int{0, 1, 3}, []int{g.enter("a"), g.enter("c"), g.enter("e")}, "a repeat changes nothing")
	at, err := g.s.GatePosition(t.Context(), g.name, "d")
	require.NoError(t, err)
	require.Equal(t, 2, at)

	require.Empty(t, g.leave("d"), "canceled in the queue: no place gets free")
	require.Equal(t, ids{"c"}, g.leave("a"))
	require.Empty(t, g.leave("a"), "a repeat admits nobody else")
	require.Equal(t, 0, g.enter("c"), "it was called")
	require.Equal(t, ids{"e"}, g.leave("b"))
	g.do(state.GateHold, "c")
	g.do(state.GateHold, "e")
	require.Empty(t, g.leave("c"))
	require.Empty(t, g.leave("e"))
	gates, err := g.s.Gates(t.Context())
	require.NoError(t, err)
	require.Empty(t, gates, "a gate that is empty leaves nothing")
}

// Whoever was called and did not begin, because its caller died, is named again.
func TestGateCallsAgain(t *testing.T) {
	t.Parallel()
	g := openGate(t, 1)
	g.enter("a")
	g.enter("b")
	g.enter("c")
	require.Equal(t, ids{"b"}, g.leave("a"))
	g.now += 1999
	require.Empty(t, g.leave("a"))
	g.now++
	require.Equal(t, ids{"b"}, g.leave("a"))
	g.do(state.GateHold, "b")
	g.now += 60_000
	require.Empty(t, g.leave(""))
	require.Equal(t, ids{"c"}, g.leave("b"))
}

func TestGateFollowsItsLimit(t *testing.T) {
	t.Parallel()
	g := openGate(t, 3)
	for _, id := range (ids{"a", "b", "c", "d", "e"}) {
		g.enter(id)
	}
	g.limit = 1
	require.Equal(t, 3, g.enter("f"))
	require.Empty(t, g.leave("a"))
	require.Empty(t, g.leave("b"))
	require.Equal(t, ids{"d"}, g.leave("c"))
	g.limit = 5
	require.Equal(t, 3, g.enter("g"), "those before it come first")
	require.Equal(t, ids{"e", "f", "g"}, g.leave(""))
}

// What waits for an execution and holds a place lends it.
func TestGateExemptsTheLine(t *testing.T) {
	t.Parallel()
	g := openGate(t, 1)
	g.enter("a")
	g.enter("b")
	require.True(t, g.do(state.GateEnter, "a1", "a").Exempt)
	require.True(t, g.do(state.GateEnter, "a2", "a1", "a").Exempt)
	require.Equal(t, 2, g.enter("b1", "b"), "b holds no place")
	require.Equal(t, ids{"b"}, g.leave("a"))
}

func TestGateHasOneWinner(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	var mu sync.Mutex
	admitted := 0
	var wg sync.WaitGroup
	for n := range 4 {
		s := open(t, srv.URL(), func(c *state.Config) { c.Prefix = "same" })
		wg.Go(func() {
			calls := make([]state.GateCall, 50)
			for i := range calls {
				calls[i] = state.GateCall{Gate: "w", Execution: engine.ExecutionID(fmt.Sprintf("%d-%d", n, i)), Limit: 7, At: 1}
			}
			for _, a := range s.Gate(t.Context(), calls) {
				if a.Err == nil && a.Position == 0 {
					mu.Lock()
					admitted++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, 7, admitted)
	s := open(t, srv.URL(), func(c *state.Config) { c.Prefix = "same" })
	gates, err := s.Gates(t.Context())
	require.NoError(t, err)
	require.Len(t, gates, 1)
	require.Equal(t, 193, gates[0].Queued)
	require.Equal(t, 7, gates[0].Limit)
	require.Len(t, gates[0].In, 7)
	require.Empty(t, gates[0].In[0].Status, "none of them was stored")
}

// An execution that waits for its turn is listed, swept, not deleted, and goes on.
func TestNewExecutions(t *testing.T) {
	t.Parallel()
	s := open(t, redistest.Start(t).URL())
	ctx := t.Context()
	require.NoError(t, s.Commit(ctx, []state.Commit{{Execution: "x", Status: engine.StatusNew, At: 5, WorkflowID: "w"}})[0])
	list := func(status engine.Status) int {
		page, _, err := s.List(ctx, state.Filter{Status: []engine.Status{status}})
		require.NoError(t, err)
		return len(page)
	}
	require.Equal(t, 1, list(engine.StatusNew))
	require.ErrorIs(t, s.Delete(ctx, "x"), state.ErrUnfinished)
	require.NoError(t, s.Settle(ctx, ids{"x"}))
	stale, err := s.ClaimStale(ctx, 6, 100, 10)
	require.NoError(t, err)
	require.Equal(t, ids{"x"}, stale)
	require.NoError(t, s.Commit(ctx, []state.Commit{{Execution: "x", Version: 1, Status: engine.StatusRunning, At: 7}})[0])
	require.Equal(t, []int{0, 1}, []int{list(engine.StatusNew), list(engine.StatusRunning)})
	require.NoError(t, s.Commit(ctx, []state.Commit{{Execution: "y", Status: engine.StatusNew, At: 5}})[0])
	require.NoError(t, s.Commit(ctx, []state.Commit{{Execution: "y", Version: 1, Status: engine.StatusCanceled, At: 8}})[0])
	require.Equal(t, []int{0, 1}, []int{list(engine.StatusNew), list(engine.StatusCanceled)})
}

func TestTurn(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	a := open(t, srv.URL(), func(c *state.Config) { c.Prefix = "same" })
	b := open(t, srv.URL(), func(c *state.Config) { c.Prefix = "same" })
	mine, err := a.Turn(t.Context(), "sweep", 60_000)
	require.NoError(t, err)
	require.True(t, mine)
	mine, err = b.Turn(t.Context(), "sweep", 60_000)
	require.NoError(t, err)
	require.False(t, mine)
}
