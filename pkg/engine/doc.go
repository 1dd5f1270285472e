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
package engine
