// Package statetest is the contract of the execution store as a test suite.
// pkg/state runs it on a Redis server, on miniredis and on a Redis Cluster; a
// stand-in for simulations runs it on itself.
package statetest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/state"
	"github.com/reprise-engine/reprise/pkg/table"
)

// Store is what the suite tests.
type Store interface {
	Commit(ctx context.Context, commits []state.Commit) []error
	Load(ctx context.Context, ids []engine.ExecutionID) ([]*state.Stored, error)
	LoadOpen(ctx context.Context, ids []engine.ExecutionID) ([]*state.Stored, error)
	PutWorkflow(ctx context.Context, hash string, document []byte) error
	Workflow(ctx context.Context, hash string) ([]byte, error)
	PutNamedWorkflow(ctx context.Context, record state.WorkflowRecord) error
	UpdateNamedWorkflow(ctx context.Context, id string, change func(*state.WorkflowRecord, bool) error) (state.WorkflowRecord, error)
	NamedWorkflow(ctx context.Context, id string) (state.WorkflowRecord, error)
	NamedWorkflows(ctx context.Context) ([]state.WorkflowRecord, error)
	DeleteNamedWorkflow(ctx context.Context, id string) error
	Secret(ctx context.Context, name string, propose []byte) ([]byte, error)
	ClaimTimers(ctx context.Context, now, claimUntil int64, limit int) ([]state.Due, error)
	ClaimStale(ctx context.Context, now, next int64, limit int) ([]engine.ExecutionID, error)
	Settle(ctx context.Context, ids []engine.ExecutionID) error
	Questions(ctx context.Context, limit int, cursor string) ([]state.Asked, string, error)
	DropTimers(ctx context.Context, due []state.Due) error
	NextDue(ctx context.Context) (timer, sweep int64, err error)
	List(ctx context.Context, f state.Filter) ([]state.Summary, string, error)
	Delete(ctx context.Context, id engine.ExecutionID) error
	Prune(ctx context.Context, before int64) (int, error)
	AppendMemory(ctx context.Context, session, id string, messages []json.RawMessage) error
	Memory(ctx context.Context, session string, n int) ([]json.RawMessage, error)
	ApplyTable(ctx context.Context, r *table.Request) (*table.Answer, error)
	Ping(ctx context.Context) error
}

var _ Store = (*state.Store)(nil)

// Run runs the suite. open returns a store that is empty and nobody else's,
// with a memory limit of MemoryLimit and the limits of tables TableLimits.
func Run(t *testing.T, open func(t *testing.T) Store) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s Store)
	}{
		{"commit/create and load", createAndLoad},
		{"commit/increments add up to the whole", incrementsAddUp},
		{"commit/stale version is refused", staleVersion},
		{"commit/create twice", createTwice},
		{"commit/unknown execution", unknownExecution},
		{"commit/finished is over", finishedIsOver},
		{"commit/repeat with its token", repeatWithToken},
		{"commit/repeat of a create with its token", repeatOfCreate},
		{"commit/racing writers", racingWriters},
		{"commit/each of a batch for itself", batchIsSeparate},
		{"commit/two of one execution in a batch", batchInOrder},
		{"commit/large", largeCommit},
		{"commit/wrong input", wrongInput},
		{"load/none", loadNone},
		{"load/open", loadOpen},
		{"load/never torn", loadNeverTorn},
		{"timers/claimed once", timersClaimedOnce},
		{"timers/claim ends", timerClaimEnds},
		{"timers/set and cleared by commits", timersFollowCommits},
		{"timers/dropped", timersDropped},
		{"timers/many in one shard", timersOfOneShard},
		{"sweep/claimed and put off", sweepClaimed},
		{"sweep/unsettled", unsettledIsSwept},
		{"sweep/settle leaves unfinished alone", settleLeavesUnfinished},
		{"sweep/unsettled and removed", unsettledAndRemoved},
		{"due/next", nextDue},
		{"questions/oldest first in pages", questionsInPages},
		{"questions/set and cleared by commits", questionsFollowCommits},
		{"questions/asked and answered while paging", questionsWhilePaging},
		{"questions/same instant", questionsOfOneInstant},
		{"list/newest first in pages", listPages},
		{"list/filters", listFilters},
		{"list/same instant", listSameInstant},
		{"retention/delete", deleteFinished},
		{"retention/prune", pruneFinished},
		{"retention/id used again", idUsedAgain},
		{"memory/appends once", memoryAppendsOnce},
		{"memory/bounded", memoryBounded},
		{"workflow/stored once", workflowStored},
		{"workflow/by id", workflowsNamed},
		{"workflow/updated by many", workflowsUpdated},
		{"secret/shared", secretsShared},
		{"tables/by name", tablesNamed},
		{"tables/rows", tableRows},
		{"tables/repeats change nothing", tableRepeats},
		{"tables/many writers", tableWriters},
		{"tables/bounded", tableBounded},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			require.NoError(t, s.Ping(t.Context()))
			test.run(t, s)
		})
	}
}

// MemoryLimit is the number of messages a memory keeps in the suite.
const MemoryLimit = 20

// TableLimits of tables in the suite.
var TableLimits = table.Limits{Rows: 5000, Bytes: 1 << 20}

// create makes a running execution with one field.
func create(id engine.ExecutionID, at int64) state.Commit {
	return state.Commit{
		Execution: id, Token: "create-" + string(id), Status: engine.StatusRunning, At: at, NextSweep: at + 1000,
		Changes: []engine.Change{set(engine.TableMeta, "identity", `{"id":"`+string(id)+`"}`)},
	}
}

// update makes a commit on a version that sets one run record.
func update(id engine.ExecutionID, version uint64, status engine.Status) state.Commit {
	return state.Commit{
		Execution: id, Version: version, Token: fmt.Sprintf("%s-%d", id, version), Status: status, At: int64(1000 + version),
		Changes: []engine.Change{set(engine.TableRun, fmt.Sprintf("%d:Node", version), `{"ok":true}`)},
	}
}

func set(table engine.Table, field, value string) engine.Change {
	return engine.Change{Table: table, Field: field, Value: []byte(value)}
}

func del(table engine.Table, field string) engine.Change {
	return engine.Change{Table: table, Field: field}
}

// commit applies commits that must succeed.
func commit(t *testing.T, s Store, commits ...state.Commit) {
	t.Helper()
	for i, err := range s.Commit(t.Context(), commits) {
		require.NoError(t, err, "commit %d", i)
	}
}

// commitErr applies one commit and returns its error.
func commitErr(t *testing.T, s Store, c state.Commit) error {
	t.Helper()
	errs := s.Commit(t.Context(), []state.Commit{c})
	require.Len(t, errs, 1)
	return errs[0]
}

// load reads one execution, nil when there is none.
func load(t *testing.T, s Store, id engine.ExecutionID) *state.Stored {
	t.Helper()
	stored, err := s.Load(t.Context(), []engine.ExecutionID{id})
	require.NoError(t, err)
	require.Len(t, stored, 1)
	return stored[0]
}

// text shows tables as strings, without empty ones, for comparisons.
func text(t engine.Tables) map[string]string {
	out := map[string]string{}
	for table, fields := range t {
		for field, value := range fields {
			out[string(table)+"/"+field] = string(value)
		}
	}
	return out
}
