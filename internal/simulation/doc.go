// Package simulation runs the real coordinator and worker code against stand-ins for
// Redis and NATS in one process, under a seeded scheduler and fake time, while
// messages are lost, doubled, delayed and reordered and processes are killed and
// paused; invariants are checked after every step. It has tests only, and the
// stand-ins in the packages below it. docs/simulation.md says what is simulated and
// how a failing seed is replayed.
//
// # How a step goes
//
// Everything runs in a synctest bubble on one processor. A call of a stand-in is an
// operation: the goroutine that makes it blocks, or goes on when the real call would
// not wait for an answer. The scheduler (world) waits until every other goroutine is
// blocked, sorts the new operations by what they are, draws what becomes of each from
// the seed (when it arrives, whether it or its answer is lost, whether it comes twice)
// and then lets the event happen that is due first: one operation reaches a
// stand-in, one answer or message reaches a process, one fault strikes. When nothing is
// due, time moves.
//
// So between two events the product's code runs undisturbed to its next call, and every
// call is a place where its process can be killed: before the call is carried out, after
// it and before its answer, or anywhere between two signals that were sent.
//
// The same seed gives the same events in the same order: the trace's hash is
// compared by a test.
package simulation
