// Package trigger has active workflows begun by what happens outside: calls of
// webhooks, forms that people send, chat messages, and the clock.
//
// Every coordinator with an HTTP address hosts the same triggers. What is active is in
// Redis; a Host looks at its revision and builds its table anew when it changed, so that
// it does not matter which coordinator a workflow was activated at or a call reaches.
//
// # Answers
//
// A call becomes a submission under an id that is chosen here. Its answer is read from
// the stored execution (queue.Conn.WaitResponse), not from whoever runs it: the coordinator that owns
// the execution may die, and the caller still gets what a node answered. A caller that cannot be
// answered in time is told the execution's id, with 504.
//
// # Slots
//
// Every Host computes the same moments of every schedule, and submits an execution whose id
// is made of the workflow, the node and the moment. Of several that do the same one is
// stored, so there is no leader. After an outage the latest moment that was missed is submitted if it
// is not older than Config.MissedWindow; all of them would come at once, and none of the
// others is of use.
package trigger
