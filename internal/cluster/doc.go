// Package cluster runs, for tests, everything an operator runs, as real
// processes that can be killed, paused and cut off from each other: coordinators
// and workers (built with failpoints), a redis-server with append-only file, a
// nats-server, a mock model, and a ledger that counts the effects of every tool
// call with its idempotency key.
//
//	c := cluster.New(t, cluster.Options{Workers: 3})
//	c.StartAll()
//	ids := c.Submit(10)
//	c.Workers[0].Kill()
//	c.Settled(ids, 30*time.Second, cluster.Once)
//
// Only the ways to servers have tests here; the rest is tested by those who use it.
package cluster
