// Package crashtest proves, with real processes and real servers, that
// executions survive what kills processes: coordinators and workers on a redis-server and
// a nats-server, a mock model, and a ledger that counts the effects of every tool call.
// Processes are killed with SIGKILL: in the middle of a node, while executions wait, or at
// a failpoint between two steps (internal/failpoint). It has tests only.
package crashtest
