// Package crashtest proves, with real processes and real servers, that
// executions survive what kills processes: two coordinators and three workers on
// a redis-server and a nats-server, a mock model, and a ledger that counts the
// effects of every tool call. It has tests only.
package crashtest
