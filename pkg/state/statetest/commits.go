package statetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/state"
)

func createAndLoad(t *testing.T, s Store) {
	c := create("a", 1000)
	c.Changes = append(c.Changes,
		set(engine.TableStack, "0", `{"node":"Start"}`), set(engine.TableRun, "0:Start: äö {x}", "\x00binary\xff"),
		set(engine.TableOpen, "job:a_1", ""), del(engine.TableOpen, "never there"))
	commit(t, s, c)
	got := load(t, s, "a")
	require.NotNil(t, got)
	require.Equal(t, uint64(1), got.Version)
	require.Equal(t, engine.StatusRunning, got.Status)
	require.Equal(t, map[string]string{
		"meta/identity": `{"id":"a"}`, "stack/0": `{"node":"Start"}`, "run/0:Start: äö {x}": "\x00binary\xff", "open/job:a_1": "",
	}, text(got.Tables), "the tables hold what was committed and nothing of the store's own")
}

// incrementsAddUp compares an execution written in many commits with a model,
// and with the same execution written at once.
func incrementsAddUp(t *testing.T, s Store) {
	r := rand.New(rand.NewPCG(1, 2))
	model := map[string]string{}
	allTables := []engine.Table{engine.TableMeta, engine.TableStack, engine.TableRun, engine.TableOpen}
	var all []engine.Change
	for version := range uint64(60) {
		c := state.Commit{Execution: "step", Version: version, Status: engine.StatusRunning, At: 1}
		for range r.IntN(40) { // crosses the size where deduplication changes its method
			change := engine.Change{Table: allTables[r.IntN(4)], Field: strconv.Itoa(r.IntN(12))}
			if r.IntN(3) > 0 {
				change.Value = []byte(strconv.Itoa(r.IntN(1e6)))
			}
			c.Changes = append(c.Changes, change)
			key := string(change.Table) + "/" + change.Field
			if change.Value == nil {
				delete(model, key)
			} else {
				model[key] = string(change.Value)
			}
		}
		all = append(all, c.Changes...)
		commit(t, s, c)
		require.Equal(t, model, text(load(t, s, "step").Tables), "after commit %d", version+1)
	}
	commit(t, s, state.Commit{Execution: "whole", Status: engine.StatusRunning, At: 1, Changes: all})
	require.Equal(t, model, text(load(t, s, "whole").Tables))
}

func staleVersion(t *testing.T, s Store) {
	commit(t, s, create("a", 1), update("a", 1, engine.StatusRunning))
	before := load(t, s, "a")
	for _, version := range []uint64{1, 3, 99} {
		c := update("a", version, engine.StatusRunning)
		c.Token = "stale"
		c.Changes = append(c.Changes, set(engine.TableMeta, "progress", "lost"), del(engine.TableRun, "1:Node"))
		c.Timers = []engine.TimerChange{{ID: "t", At: 5}}
		require.ErrorIs(t, commitErr(t, s, c), state.ErrConflict, "version %d", version)
	}
	require.Equal(t, before, load(t, s, "a"), "a refused commit changes nothing")
	due, err := s.ClaimTimers(t.Context(), 1e6, 2e6, 10)
	require.NoError(t, err)
	require.Empty(t, due)
}

func createTwice(t *testing.T, s Store) {
	commit(t, s, create("a", 1))
	again := create("a", 2)
	again.Token = "another"
	require.ErrorIs(t, commitErr(t, s, again), state.ErrExists)
	commit(t, s, update("a", 1, engine.StatusSuccess))
	require.ErrorIs(t, commitErr(t, s, again), state.ErrExists, "also once it is finished")
}

func unknownExecution(t *testing.T, s Store) {
	require.ErrorIs(t, commitErr(t, s, update("a", 1, engine.StatusRunning)), state.ErrNotFound)
	require.Nil(t, load(t, s, "a"))
}

func finishedIsOver(t *testing.T, s Store) {
	commit(t, s, create("a", 1), update("a", 1, engine.StatusError))
	require.ErrorIs(t, commitErr(t, s, update("a", 2, engine.StatusRunning)), state.ErrFinished)
	got := load(t, s, "a")
	require.Equal(t, engine.StatusError, got.Status)
	require.Equal(t, uint64(2), got.Version)
	stale, err := s.ClaimStale(t.Context(), 1e12, 2e12, 10)
	require.NoError(t, err)
	require.Empty(t, stale, "nothing to sweep")
}

func repeatWithToken(t *testing.T, s Store) {
	commit(t, s, create("a", 1))
	mine := update("a", 1, engine.StatusRunning)
	commit(t, s, mine)
	commit(t, s, mine)
	require.Equal(t, uint64(2), load(t, s, "a").Version, "the repeat wrote nothing")
	for version := uint64(2); version < 9; version++ {
		commit(t, s, update("a", version, engine.StatusRunning))
		commit(t, s, mine) // others have committed since
	}
	require.Equal(t, uint64(9), load(t, s, "a").Version)
	commit(t, s, update("a", 9, engine.StatusRunning))
	require.ErrorIs(t, commitErr(t, s, mine), state.ErrConflict, "eight commits later it is forgotten, which is safe")

	last := update("a", 10, engine.StatusSuccess)
	commit(t, s, last)
	commit(t, s, last) // the one that finishes, too
	require.Equal(t, uint64(11), load(t, s, "a").Version)
}

func repeatOfCreate(t *testing.T, s Store) {
	c := create("a", 1)
	commit(t, s, c, c)
	commit(t, s, update("a", 1, engine.StatusWaiting))
	commit(t, s, c)
	got := load(t, s, "a")
	require.Equal(t, uint64(2), got.Version)
	require.Equal(t, engine.StatusWaiting, got.Status)
}

// racingWriters has many writers add one to a number, as coordinators that
// take the same execution do: every addition counts once.
func racingWriters(t *testing.T, s Store) {
	const writers, each = 8, 25
	c := create("a", 1)
	c.Changes = append(c.Changes, set(engine.TableMeta, "sum", "0"))
	commit(t, s, c)
	var conflicts atomic.Int64
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := range each {
				for {
					stored, err := s.Load(t.Context(), []engine.ExecutionID{"a"})
					if err != nil {
						t.Errorf("load: %v", err)
						return
					}
					sum, _ := strconv.Atoi(string(stored[0].Tables[engine.TableMeta]["sum"]))
					err = s.Commit(t.Context(), []state.Commit{{
						Execution: "a", Version: stored[0].Version, Token: fmt.Sprintf("%d-%d", w, n), Status: engine.StatusRunning, At: 1,
						Changes: []engine.Change{set(engine.TableMeta, "sum", strconv.Itoa(sum+1))},
					}})[0]
					if err == nil {
						break
					}
					if !errors.Is(err, state.ErrConflict) {
						t.Errorf("commit: %v", err)
						return
					}
					conflicts.Add(1)
				}
			}
		})
	}
	wg.Wait()
	got := load(t, s, "a")
	require.Equal(t, strconv.Itoa(writers*each), string(got.Tables[engine.TableMeta]["sum"]))
	require.Equal(t, uint64(1+writers*each), got.Version)
	t.Logf("%d conflicts", conflicts.Load())
}

func batchIsSeparate(t *testing.T, s Store) {
	commit(t, s, create("old", 1))
	batch := []state.Commit{
		create("old", 1), // repeat of the create: fine
		update("none", 3, engine.StatusRunning),
		update("old", 7, engine.StatusRunning),
		{Execution: "bad id", Status: engine.StatusRunning},
	}
	for i := range 60 {
		batch = append(batch, create(engine.ExecutionID("new"+strconv.Itoa(i)), 1))
	}
	errs := s.Commit(t.Context(), batch)
	require.Len(t, errs, len(batch))
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], state.ErrNotFound)
	require.ErrorIs(t, errs[2], state.ErrConflict)
	require.ErrorContains(t, errs[3], "bad id")
	var ids []engine.ExecutionID
	for i, err := range errs[4:] {
		require.NoError(t, err)
		ids = append(ids, batch[4+i].Execution)
	}
	stored, err := s.Load(t.Context(), ids)
	require.NoError(t, err)
	for i, got := range stored {
		require.NotNil(t, got, ids[i])
		require.Equal(t, `{"id":"`+string(ids[i])+`"}`, string(got.Tables[engine.TableMeta]["identity"]))
	}
	require.Empty(t, s.Commit(t.Context(), nil))
}

func batchInOrder(t *testing.T, s Store) {
	commit(t, s, create("a", 1), update("a", 1, engine.StatusRunning), update("a", 2, engine.StatusWaiting), update("a", 3, engine.StatusSuccess))
	require.Equal(t, uint64(4), load(t, s, "a").Version)
}

// largeCommit has more fields than Lua can unpack at once, and a value of 3 MB.
func largeCommit(t *testing.T, s Store) {
	c := create("a", 1)
	for i := range 12_000 {
		c.Changes = append(c.Changes, set(engine.TableRun, strconv.Itoa(i), "x"))
	}
	for i := range 9_000 {
		c.Timers = append(c.Timers, engine.TimerChange{ID: strconv.Itoa(i), At: int64(i + 1)})
	}
	big := strings.Repeat("0123456789abcdef", 3<<16)
	c.Changes = append(c.Changes, set(engine.TableOpen, "big", big))
	commit(t, s, c)
	got := load(t, s, "a")
	require.Len(t, got.Tables[engine.TableRun], 12_000)
	require.Equal(t, big, string(got.Tables[engine.TableOpen]["big"]))
	u := update("a", 1, engine.StatusRunning)
	u.Changes = nil
	for i := range 12_000 {
		u.Changes = append(u.Changes, del(engine.TableRun, strconv.Itoa(i)))
	}
	for i := range 9_000 {
		u.Timers = append(u.Timers, engine.TimerChange{ID: strconv.Itoa(i)})
	}
	commit(t, s, u)
	require.Empty(t, load(t, s, "a").Tables[engine.TableRun])
	timer, _, err := s.NextDue(t.Context())
	require.NoError(t, err)
	require.Zero(t, timer)
}

func wrongInput(t *testing.T, s Store) {
	for name, spoil := range map[string]func(*state.Commit){
		"empty id":       func(c *state.Commit) { c.Execution = "" },
		"colon in id":    func(c *state.Commit) { c.Execution = "a:meta" },
		"brace in id":    func(c *state.Commit) { c.Execution = "{s001}" },
		"bar in id":      func(c *state.Commit) { c.Execution = "a|b" },
		"long id":        func(c *state.Commit) { c.Execution = engine.ExecutionID(strings.Repeat("a", 129)) },
		"no status":      func(c *state.Commit) { c.Status = "" },
		"unknown status": func(c *state.Commit) { c.Status = "crashed" },
		"finished, but running": func(c *state.Commit) {
			c.Finished = true
		},
		"unknown table":  func(c *state.Commit) { c.Changes[0].Table = "x" },
		"reserved field": func(c *state.Commit) { c.Changes[0].Field = "~v" },
		"long token":     func(c *state.Commit) { c.Token = strings.Repeat("t", 65) },
	} {
		c := create("a", 1)
		spoil(&c)
		require.Error(t, commitErr(t, s, c), name)
	}
	require.Nil(t, load(t, s, "a"))
}

func loadNone(t *testing.T, s Store) {
	none, err := s.Load(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, none)
	commit(t, s, create("b", 1))
	got, err := s.Load(t.Context(), []engine.ExecutionID{"a", "b", "c"})
	require.NoError(t, err)
	require.Nil(t, got[0])
	require.NotNil(t, got[1])
	require.Nil(t, got[2])
}

func loadOpen(t *testing.T, s Store) {
	c := create("a", 1)
	c.Changes = []engine.Change{
		set(engine.TableMeta, "m", "1"), set(engine.TableStack, "s", "2"), set(engine.TableRun, "r", "3"), set(engine.TableOpen, "o", "4"),
	}
	commit(t, s, c)
	got, err := s.LoadOpen(t.Context(), []engine.ExecutionID{"a", "b"})
	require.NoError(t, err)
	require.Nil(t, got[1])
	whole := load(t, s, "a")
	require.Equal(t, whole.Version, got[0].Version)
	require.Equal(t, whole.Status, got[0].Status)
	delete(whole.Tables, engine.TableRun)
	require.Equal(t, whole.Tables, got[0].Tables)
}

// loadNeverTorn reads an execution while it is committed to; each commit
// writes the same number to all tables.
func loadNeverTorn(t *testing.T, s Store) {
	all := func(n uint64) []engine.Change {
		v := strconv.FormatUint(n, 10)
		return []engine.Change{
			set(engine.TableMeta, "n", v), set(engine.TableStack, "n", v), set(engine.TableRun, "n", v), set(engine.TableOpen, "n", v),
		}
	}
	commit(t, s, state.Commit{Execution: "a", Status: engine.StatusRunning, At: 1, Changes: all(1)})
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(done)
		for version := uint64(1); version < 300; version++ {
			err := s.Commit(t.Context(), []state.Commit{{Execution: "a", Version: version, Status: engine.StatusRunning, At: 1, Changes: all(version + 1)}})[0]
			if err != nil {
				t.Errorf("commit: %v", err)
				return
			}
		}
	})
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		got := load(t, s, "a")
		want := strconv.FormatUint(got.Version, 10)
		for table, fields := range got.Tables {
			require.Equal(t, want, string(fields["n"]), "table %s at version %s", table, want)
		}
	}
	wg.Wait()
}
