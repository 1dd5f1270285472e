// Package engine is the state machine of one execution: pure and
// deterministic. It has no I/O, no clock, no randomness, no goroutines and no
// log; time and ids come in with events.
//
//	step, err := machine.Apply(state, event)
//
// Apply changes the State in memory and returns a Step: what to persist and
// what to do. The caller's duties, in this order:
//
//  1. commit Step.Changes and Step.Timers in one atomic write (several Steps
//     of one execution may share a write: later changes of a field win),
//  2. publish Step.Jobs and withdraw Step.Dropped,
//  3. acknowledge the event to whoever sent it,
//  4. tell watchers Step.Live.
//
// An error from Apply means that an invariant would break: the State is
// unchanged. When a commit is refused the caller throws the State away, loads
// it again (Restore) and applies the event again.
//
// Everything is idempotent by identity: an event for a job or timer that is
// not open gives a Step with Ignored set and no effects.
//
// # A run of a node
//
// Entries of the stack become runs. One event takes off the stack all that may
// run (tx.advance), so between two events a run is in one of these places:
//
//	         pop                  result                children on the stack
//	entry ---------> job in flight -----------> record ------------------------>
//	  ^               |    ^   | request
//	  |         fails |    |   v
//	  |               v    | resume entry, with the tools' entries above it
//	  |    job with RetryAt|   |
//	  |    (its timer)-----+---+ all answers are there
//	  |
//	  +-- a failure that stops puts the entry back
//
// Triggers, disabled and pinned nodes, and nodes without input are settled on
// the spot and never become jobs.
//
// # A wait
//
// A node may answer with a Wait: for a moment, a webhook, a person's decision, or
// other executions. The run is parked: its record says waiting, it holds no job, and
// what does not depend on it goes on. When that has happened (an event that calls
// tx.resume, or the deadline) its entry is pushed on the stack again and the node is
// called once more, as the next slice of the same run, with a Resumption. When all
// that is left of an execution is parked its status is waiting. To add a kind of
// wait see park.go.
//
// # A request
//
// The requester's result is a Request: it is validated whole, then a record is
// reserved for each action (status running, arguments as inputOverride), the
// round is stored, and the stack becomes [A1 A2 … An requester(resume) …]. The
// tools are dispatched together, or one by one when the workflow's
// toolExecution is "sequential". The requester is dispatched again, as the
// next slice of the same run, when no record of its round is running. It is
// not announced again and gets one record. A requester whose missing answers are
// all parked is set aside: what is below it on the stack runs, and it is put on top
// again with its last answer.
//
// A tool that is connected through a gate is only run with an approval: the gate's
// record, decided by a person, about the same call and arguments, once.
//
// # What is stored, and when
//
// A record is written when it is reserved, begun and closed; a round once; the
// requester's entry once a round, with a Progress of constant size. Nothing
// that was written is written again because the execution grew.
//
// # Failures
//
// A node's failure is data (NodeError). It is retried as the node says, then
// goes where its onError sends it: into the answer for a tool, on with the
// input, to the error output, or it ends the execution. In the last case
// nothing new begins, jobs in flight are awaited and recorded, and then the
// execution has the status error. Cancel and the execution's time limit do not
// wait. A failed execution keeps its stack; Retried begins another one from it, and
// what had ended is not run again.
//
// # Files
//
//	apply.go     events in              request.go   rounds of tool calls, approvals
//	dispatch.go  entries become jobs    park.go      waits, and what ends them
//	finish.go    results become records restart.go   from where another broke off
//	schedule.go  records feed nodes     partial.go   runs up to a node
//	join.go      nodes that wait        lineage.go   inputs and pairedItem
//	retry.go     further attempts       errors.go    onError
//	change.go    changes and their undo check.go     invariants
//	codec.go     the stored form        export.go    n8n's run data
//	live.go, trace.go   notices
package engine
