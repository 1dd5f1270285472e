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

// questions reads all open questions in pages.
func questions(t *testing.T, s Store, limit int) (all []state.Asked) {
	t.Helper()
	cursor := ""
	for range 10_000 {
		page, next, err := s.Questions(t.Context(), limit, cursor)
		require.NoError(t, err)
		if limit > 0 {
			require.LessOrEqual(t, len(page), limit)
		}
		all = append(all, page...)
		if next == "" {
			return all
		}
		require.NotEmpty(t, page, "only the last page may be empty")
		require.NotEqual(t, cursor, next, "the list must move on")
		cursor = next
	}
	t.Fatal("the list does not end")
	return nil
}

// asks makes a waiting execution with questions.
func asks(id engine.ExecutionID, questions ...engine.TimerChange) state.Commit {
	c := create(id, 1)
	c.Status, c.Questions = engine.StatusWaiting, questions
	return c
}

func questionsInPages(t *testing.T, s Store) {
	require.Empty(t, questions(t, s, 0))
	r := rand.New(rand.NewPCG(5, 6))
	var want []state.Asked
	var commits []state.Commit
	for i := range 150 {
		id := engine.ExecutionID(fmt.Sprintf("e%03d", i))
		var own []engine.TimerChange
		for n := range 1 + i%3 {
			q := engine.TimerChange{ID: fmt.Sprintf("%s_%d", id, n), At: int64(1 + r.IntN(200))} // some at the same instant
			own = append(own, q)
			want = append(want, state.Asked{Token: q.ID, At: q.At})
		}
		commits = append(commits, asks(id, own...))
	}
	commit(t, s, commits...)
	sort.Slice(want, func(i, j int) bool {
		if want[i].At != want[j].At {
			return want[i].At < want[j].At
		}
		return want[i].Token < want[j].Token
	})
	for _, limit := range []int{0, 7, 50, len(want) - 1, len(want), 1000} {
		require.Equal(t, want, questions(t, s, limit), "limit %d", limit)
	}
	page, next, err := s.Questions(t.Context(), len(want), "")
	require.NoError(t, err)
	require.Len(t, page, len(want))
	require.Empty(t, next, "a full page that is the last says so")

	for _, cursor := range []string{"x", "1", ".a", "1."} {
		_, _, err := s.Questions(t.Context(), 1, cursor)
		require.ErrorIs(t, err, state.ErrFilter, cursor)
		require.ErrorContains(t, err, "cursor", cursor)
	}
}

// questionsFollowCommits checks that the index says what the commits said.
func questionsFollowCommits(t *testing.T, s Store) {
	commit(t, s,
		asks("a", engine.TimerChange{ID: "a_1", At: 100}, engine.TimerChange{ID: "a_2", At: 50}, engine.TimerChange{ID: "a_2"}),
		asks("b", engine.TimerChange{ID: "b_1", At: 90}))
	require.Equal(t, []state.Asked{{Token: "b_1", At: 90}, {Token: "a_1", At: 100}}, questions(t, s, 0), "a_2 was asked and answered in one commit")

	stale := update("a", 7, engine.StatusRunning)
	stale.Questions = []engine.TimerChange{{ID: "a_1"}, {ID: "a_9", At: 1}}
	require.ErrorIs(t, commitErr(t, s, stale), state.ErrConflict)
	require.Len(t, questions(t, s, 0), 2, "a refused commit changes nothing")

	answered := update("b", 1, engine.StatusRunning)
	answered.Questions = []engine.TimerChange{{ID: "b_1"}, {ID: "b_4", At: 120}}
	answered.Timers = []engine.TimerChange{{ID: "wait", At: 500}}
	commit(t, s, answered, answered) // the repeat as well
	require.Equal(t, []state.Asked{{Token: "a_1", At: 100}, {Token: "b_4", At: 120}}, questions(t, s, 0))
	require.Equal(t, []state.Due{{Execution: "b", Timer: "wait", At: 500, Claim: 900}}, claim(t, s, 500, 900))

	plain := update("b", 2, engine.StatusWaiting)
	commit(t, s, plain)
	require.Len(t, questions(t, s, 0), 2, "a commit that says nothing about questions leaves them")

	end := update("b", 3, engine.StatusCanceled)
	end.Questions = []engine.TimerChange{{ID: "b_4"}}
	commit(t, s, end, answered) // a late repeat brings nothing back
	require.Equal(t, []state.Asked{{Token: "a_1", At: 100}}, questions(t, s, 0))
	end = update("a", 1, engine.StatusError)
	end.Unsettled, end.Questions = true, []engine.TimerChange{{ID: "a_1"}}
	commit(t, s, end)
	require.Empty(t, questions(t, s, 0))
}

// questionsWhilePaging answers and asks between two pages: the others are each
// seen once.
func questionsWhilePaging(t *testing.T, s Store) {
	var all []engine.TimerChange
	for i := range 30 {
		all = append(all, engine.TimerChange{ID: fmt.Sprintf("a_%02d", i), At: int64(100 + i/4)})
	}
	commit(t, s, asks("a", all...))
	first, next, err := s.Questions(t.Context(), 10, "")
	require.NoError(t, err)
	require.Len(t, first, 10)
	u := update("a", 1, engine.StatusWaiting)
	u.Questions = []engine.TimerChange{{ID: "a_03"}, {ID: first[9].Token}, {ID: "a_12"}, {ID: "a_99", At: 99}}
	commit(t, s, u)
	second, next, err := s.Questions(t.Context(), 10, next)
	require.NoError(t, err)
	require.NotEmpty(t, next)
	var tokens []string
	for _, q := range second {
		tokens = append(tokens, q.Token)
	}
	require.Equal(t, []string{"a_10", "a_11", "a_13", "a_14", "a_15", "a_16", "a_17", "a_18", "a_19", "a_20"}, tokens)
}

// questionsOfOneInstant has more of one instant in a shard than one read takes,
// and more in one commit than Lua unpacks at once.
func questionsOfOneInstant(t *testing.T, s Store) {
	var all, none []engine.TimerChange
	for i := range 9_000 {
		all = append(all, engine.TimerChange{ID: fmt.Sprintf("a_%05d", i), At: 1_700_000_000_000})
		none = append(none, engine.TimerChange{ID: all[i].ID})
	}
	commit(t, s, asks("a", all...))
	got := questions(t, s, 1000)
	require.Len(t, got, 9_000)
	for i, q := range got {
		require.Equal(t, state.Asked{Token: all[i].ID, At: all[i].At}, q)
	}
	u := update("a", 1, engine.StatusRunning)
	u.Questions = none
	commit(t, s, u)
	require.Empty(t, questions(t, s, 0))
}
