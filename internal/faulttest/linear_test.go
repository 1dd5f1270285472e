package faulttest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/cluster"
	"github.com/reprise-engine/reprise/internal/redistest"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/state"
)

// call is one call of a Store by one writer.
type call struct {
	read    bool
	version uint64 // that a commit was made for
	token   string
}

// outcome of a call. unknown: the caller was told of a failure, so the commit may
// have been applied, before or after that moment, or not at all.
type outcome struct {
	ok, unknown bool
	version     uint64 // that a read has seen
	last        string // and the token of the commit that led to it
}

// register is what an execution looks like from outside: how many commits it has
// seen, and the tokens of the last ones, which it remembers.
type register struct {
	version uint64
	tokens  [remembered]string // of the commit that led to version v at v%remembered
}

// remembered is how many commits an execution remembers the tokens of.
const remembered = 8

func (r register) last() string { return r.tokens[r.version%remembered] }

func (r register) after(token string) register {
	r.version++
	r.tokens[r.version%remembered] = token
	return r
}

// model of an execution: a commit counts exactly when its version is the present one. Else it
// answers success when it is one of the last eight that were applied, and is refused in
// all other cases. A read sees the last one.
var model = porcupine.NondeterministicModel{
	Init: func() []any { return []any{register{}} },
	Step: func(s, input, output any) []any {
		was, in, out := s.(register), input.(call), output.(outcome)
		if in.read {
			if out.unknown || out.version == was.version && out.last == was.last() {
				return []any{was}
			}
			return nil
		}
		fits := was.version == in.version
		switch {
		case out.unknown && fits:
			return []any{was, was.after(in.token)}
		case out.unknown:
			return []any{was}
		case out.ok && fits:
			return []any{was.after(in.token)}
		case !fits && out.ok == slices.Contains(was.tokens[:], in.token):
			return []any{was}
		}
		return nil
	},
	Equal: func(a, b any) bool { return a == b },
	DescribeOperation: func(input, output any) string {
		return fmt.Sprintf("%+v -> %+v", input, output)
	},
}

// Commits to one execution by writers that know nothing of each other, over a network that
// swallows, delays and loses replies, are linearizable: whatever anybody was told, there is
// an order in which each commit was applied once, on the version that it was made for.
func TestCommitsAreLinearizable(t *testing.T) {
	t.Parallel()
	rounds := 8
	if *full {
		rounds = 60
	}
	server := redistest.Shared(t)
	seen := map[string]int{}
	for round := range rounds {
		link := cluster.NewLink(t, server.Addr())
		proxy := redistest.StartProxy(t, link.Addr())
		history := record(t, proxy, link, fmt.Sprintf("linear%d", round))
		result, _ := porcupine.CheckOperationsVerbose(model.ToModel(), history, 30*time.Second)
		require.Equal(t, porcupine.Ok, result, "round %d: %d calls are not linearizable:\n%v", round, len(history), history)
		for _, o := range history {
			switch in, out := o.Input.(call), o.Output.(outcome); {
			case in.read:
			case out.unknown:
				seen["unclear"]++
			case out.ok:
				seen["applied"]++
			default:
				seen["refused"]++
			}
		}
	}
	t.Logf("commits: %v", seen)
	require.NotZero(t, seen["applied"])
	require.NotZero(t, seen["refused"], "writers never met")
	require.NotZero(t, seen["unclear"], "no fault hit a commit")
}

// A history that is not linearizable is recognised: the model would else prove nothing.
func TestModelRefusesALostUpdate(t *testing.T) {
	t.Parallel()
	history := []porcupine.Operation{
		{ClientId: 0, Input: call{token: "a"}, Output: outcome{ok: true}, Call: 0, Return: 1},
		{ClientId: 1, Input: call{version: 1, token: "b"}, Output: outcome{ok: true}, Call: 2, Return: 3},
		{ClientId: 2, Input: call{version: 1, token: "c"}, Output: outcome{ok: true}, Call: 4, Return: 5},
	}
	require.False(t, porcupine.CheckOperations(model.ToModel(), history))
	history[2].Output = outcome{} // refused
	require.True(t, porcupine.CheckOperations(model.ToModel(), history))
}

// A commit that was applied and is sent again answers success as long as it is remembered, and
// is refused from then on: neither else is possible.
func TestModelRemembersEightCommits(t *testing.T) {
	t.Parallel()
	for later := range 12 {
		var history []porcupine.Operation
		add := func(in call, out outcome) {
			n := int64(len(history))
			history = append(history, porcupine.Operation{ClientId: 0, Input: in, Call: 2 * n, Output: out, Return: 2*n + 1})
		}
		for i := range later + 1 {
			add(call{version: uint64(i), token: fmt.Sprint(i)}, outcome{ok: true})
		}
		for _, ok := range []bool{true, false} {
			again := append(slices.Clone(history), porcupine.Operation{Input: call{token: "0"}, Output: outcome{ok: ok}, Call: 1000, Return: 1001})
			require.Equal(t, ok == (later < remembered), porcupine.CheckOperations(model.ToModel(), again), "%d later, answered with success: %t", later, ok)
		}
	}
}

// record lets writers and a reader work on an execution while the way to Redis breaks
// in turn, and returns what each was told.
func record(t *testing.T, proxy *redistest.Proxy, link *cluster.Link, prefix string) (history []porcupine.Operation) {
	t.Helper()
	const writers, commits = 3, 15
	link.Slow(2*time.Millisecond, time.Millisecond) // so that calls meet
	begin := time.Now()
	var mu sync.Mutex
	clients := 0
	note := func(client int, in call, do func() outcome) outcome {
		start := time.Since(begin).Nanoseconds()
		out := do()
		end := time.Since(begin).Nanoseconds()
		if out.unknown {
			end = time.Hour.Nanoseconds() // it may take effect whenever Redis gets to it
		}
		mu.Lock()
		defer mu.Unlock()
		history = append(history, porcupine.Operation{ClientId: client, Input: in, Call: start, Output: out, Return: end})
		if !in.read && !out.ok && !out.unknown {
			// The client library sends a command once more when it got no reply: the refusal may be the
			// answer to the second one, and the first one may have been applied and forgotten since.
			clients++
			history = append(history, porcupine.Operation{ClientId: clients, Input: in, Call: start, Output: outcome{unknown: true}, Return: end})
		}
		return out
	}
	var wg sync.WaitGroup
	together := make(chan struct{})
	next := func() int { // a client whose call has no end can make no other one
		mu.Lock()
		defer mu.Unlock()
		clients++
		return clients
	}
	for w := range writers {
		var store *state.Store
		var err error
		for until := time.Now().Add(within); ; { // a busy machine may need several tries with such times
			store, err = state.Open(t.Context(), state.Config{
				URL: proxy.URL(), Prefix: prefix, Log: zap.NewNop(),
				DialTimeout: 200 * time.Millisecond, ReadTimeout: 150 * time.Millisecond, WriteTimeout: 150 * time.Millisecond,
			})
			if err == nil || time.Now().After(until) {
				break
			}
		}
		require.NoError(t, err)
		t.Cleanup(func() { _ = store.Close() })
		wg.Go(func() {
			<-together
			var version uint64
			for i := range commits {
				if i%3 == 2 {
					got := note(next(), call{read: true}, func() outcome { return look(t.Context(), store) })
					if !got.unknown {
						version = got.version
					}
				}
				in := call{version: version, token: fmt.Sprintf("w%d.%d", w, i)}
				for range 3 { // with the same token, as long as nobody says how it went
					got := note(next(), in, func() outcome { return write(t.Context(), store, in) })
					if got.ok {
						version++
					}
					if !got.unknown {
						break
					}
				}
			}
		})
	}
	close(together)
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for n := 0; ; n++ {
		switch n % 3 {
		case 0:
			proxy.LoseReplies(1+rand.IntN(3), "evalsha")
		case 1:
			link.Heal()
			link.Slow(time.Duration(20+rand.IntN(200))*time.Millisecond, 15*time.Millisecond)
		case 2:
			link.BlackHole()
		}
		select {
		case <-done:
			link.Heal()
			return history
		case <-time.After(time.Duration(10+rand.IntN(60)) * time.Millisecond):
			link.Heal()
			link.Slow(2*time.Millisecond, time.Millisecond)
		}
	}
}

const subject = engine.ExecutionID("subject")

func write(ctx context.Context, store *state.Store, in call) outcome {
	err := store.Commit(ctx, []state.Commit{{
		Execution: subject, Version: in.version, Token: in.token, Status: engine.StatusRunning, At: 1, NextSweep: 1,
		Changes: []engine.Change{{Table: engine.TableRun, Field: "last", Value: []byte(in.token)}},
	}})[0]
	switch {
	case err == nil:
		return outcome{ok: true}
	case errors.Is(err, state.ErrConflict), errors.Is(err, state.ErrExists), errors.Is(err, state.ErrNotFound):
		return outcome{}
	}
	return outcome{unknown: true}
}

func look(ctx context.Context, store *state.Store) outcome {
	stored, err := store.Load(ctx, []engine.ExecutionID{subject})
	if err != nil {
		return outcome{unknown: true}
	}
	if stored[0] == nil {
		return outcome{}
	}
	return outcome{version: stored[0].Version, last: string(stored[0].Tables[engine.TableRun]["last"])}
}
