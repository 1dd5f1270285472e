package statetest

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/state"
)

// pages reads a whole list page by page.
func pages(t *testing.T, s Store, f state.Filter) (all []state.Summary) {
	t.Helper()
	for range 10_000 {
		page, next, err := s.List(t.Context(), f)
		require.NoError(t, err)
		if f.Limit > 0 {
			require.LessOrEqual(t, len(page), f.Limit)
		}
		all = append(all, page...)
		if next == "" {
			return all
		}
		require.NotEqual(t, f.Cursor, next, "the list must move on")
		f.Cursor = next
	}
	t.Fatal("the list does not end")
	return nil
}

func idsOf(list []state.Summary) []string {
	ids := make([]string, len(list))
	for i, s := range list {
		ids[i] = string(s.ID)
	}
	return ids
}

func listPages(t *testing.T, s Store) {
	require.Empty(t, pages(t, s, state.Filter{}))
	const n = 400
	r := rand.New(rand.NewPCG(3, 4))
	var commits []state.Commit
	for i := range n {
		c := create(engine.ExecutionID(fmt.Sprintf("e%03d", i)), int64(1+r.IntN(300))) // some at the same instant
		if i%3 == 0 {
			c.Status = engine.StatusSuccess
		}
		commits = append(commits, c)
	}
	commit(t, s, commits...)
	sort.Slice(commits, func(i, j int) bool {
		if commits[i].At != commits[j].At {
			return commits[i].At > commits[j].At
		}
		return commits[i].Execution > commits[j].Execution
	})
	want := make([]string, n)
	for i, c := range commits {
		want[i] = string(c.Execution)
	}
	for _, limit := range []int{0, 7, 50, 399, 400, 1000} {
		require.Equal(t, want, idsOf(pages(t, s, state.Filter{Limit: limit})), "limit %d", limit)
	}
	for _, cursor := range []string{"x", "1", ".a", "1.", "1.a:b"} {
		_, _, err := s.List(t.Context(), state.Filter{Cursor: cursor})
		require.ErrorContains(t, err, "cursor", cursor)
	}
}

func listFilters(t *testing.T, s Store) {
	make := func(id engine.ExecutionID, at int64, wf, name string) {
		c := create(id, at)
		c.WorkflowID, c.WorkflowName, c.StartedAt = wf, name, at+5
		commit(t, s, c)
	}
	make("a", 10, "w1", "Orders")
	make("b", 20, "w2", "Mail")
	make("c", 30, "w1", "Orders")
	make("d", 40, "w2", "Mail")
	wait := update("b", 1, engine.StatusWaiting)
	done := update("c", 1, engine.StatusSuccess)
	done.StoppedAt = 99
	commit(t, s, wait, done, update("d", 1, engine.StatusError))

	of := func(f state.Filter) []string { return idsOf(pages(t, s, f)) }
	st := func(s ...engine.Status) state.Filter { return state.Filter{Status: s} }
	require.Equal(t, []string{"d", "c", "b", "a"}, of(state.Filter{}))
	require.Equal(t, []string{"a"}, of(st(engine.StatusRunning)))
	require.Equal(t, []string{"b"}, of(st(engine.StatusWaiting)))
	require.Equal(t, []string{"d", "c"}, of(st(engine.StatusSuccess, engine.StatusError)))
	require.Empty(t, of(st(engine.StatusCanceled)))
	require.Equal(t, []string{"c", "a"}, of(state.Filter{Workflow: "w1"}))
	require.Equal(t, []string{"c", "a"}, of(state.Filter{Workflow: "w1", Limit: 1}))
	require.Equal(t, []string{"d", "b"}, of(state.Filter{Workflow: "Mail"}))
	require.Empty(t, of(state.Filter{Workflow: "w3"}))
	_, _, err := s.List(t.Context(), st("crashed"))
	require.ErrorContains(t, err, "crashed")

	list := pages(t, s, state.Filter{Workflow: "w1"})
	require.Equal(t, state.Summary{
		ID: "c", Status: engine.StatusSuccess, WorkflowID: "w1", WorkflowName: "Orders", StartedAt: 35, StoppedAt: 99, Version: 2,
	}, list[0])
	require.Equal(t, state.Summary{
		ID: "a", Status: engine.StatusRunning, WorkflowID: "w1", WorkflowName: "Orders", StartedAt: 15, Version: 1,
	}, list[1])

	resumed := update("b", 2, engine.StatusRunning)
	commit(t, s, resumed)
	require.Equal(t, []string{"b", "a"}, of(st(engine.StatusRunning)))
	require.Empty(t, of(st(engine.StatusWaiting)))
}

// listSameInstant has more executions of one instant in a shard than one read takes.
func listSameInstant(t *testing.T, s Store) {
	var want []string
	var commits []state.Commit
	for i := 0; len(want) < 40; i++ {
		id := fmt.Sprintf("x%07d", i)
		if state.ShardOf(id) == 7 {
			want = append([]string{id}, want...)
			commits = append(commits, create(engine.ExecutionID(id), 500))
		}
	}
	commit(t, s, commits...)
	require.Equal(t, want, idsOf(pages(t, s, state.Filter{Limit: 3})))
}

func deleteFinished(t *testing.T, s Store) {
	commit(t, s, create("a", 1))
	require.ErrorIs(t, s.Delete(t.Context(), "a"), state.ErrUnfinished)
	commit(t, s, update("a", 1, engine.StatusCanceled))
	require.NoError(t, s.Delete(t.Context(), "a"))
	require.ErrorIs(t, s.Delete(t.Context(), "a"), state.ErrNotFound)
	require.Error(t, s.Delete(t.Context(), "a:b"))
	require.Nil(t, load(t, s, "a"))
	require.Empty(t, pages(t, s, state.Filter{}))
}

func pruneFinished(t *testing.T, s Store) {
	const n = 300
	for i := range n {
		id := engine.ExecutionID(fmt.Sprintf("e%d", i))
		u := update(id, 1, []engine.Status{engine.StatusSuccess, engine.StatusError, engine.StatusCanceled}[i%3])
		u.StoppedAt = int64(1000 + i)
		commit(t, s, create(id, 1), u)
	}
	commit(t, s, create("running", 1))
	removed, err := s.Prune(t.Context(), 999)
	require.NoError(t, err)
	require.Zero(t, removed)
	removed, err = s.Prune(t.Context(), 1099)
	require.NoError(t, err)
	require.Equal(t, 100, removed)
	require.Nil(t, load(t, s, "e99"))
	require.NotNil(t, load(t, s, "e100"))
	require.Len(t, pages(t, s, state.Filter{}), 201)
	removed, err = s.Prune(t.Context(), 1e12)
	require.NoError(t, err)
	require.Equal(t, 200, removed)
	require.Equal(t, []string{"running"}, idsOf(pages(t, s, state.Filter{})))
}

func idUsedAgain(t *testing.T, s Store) {
	commit(t, s, create("a", 1), update("a", 1, engine.StatusSuccess))
	require.NoError(t, s.Delete(t.Context(), "a"))
	again := create("a", 5)
	again.Token = "again"
	commit(t, s, again)
	require.Equal(t, []string{"a"}, idsOf(pages(t, s, state.Filter{})))
	require.Empty(t, pages(t, s, state.Filter{Status: []engine.Status{engine.StatusSuccess}}))
	removed, err := s.Prune(t.Context(), 1e12)
	require.NoError(t, err)
	require.Zero(t, removed)
	require.Equal(t, uint64(1), load(t, s, "a").Version)
}
