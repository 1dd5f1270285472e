// Package chaos breaks a fleet on purpose and counts what came of it: it is
// `reprise chaos`, the product's promise as a command.
//
// Run starts coordinators and workers, and unless servers are given a NATS and a
// redis-server, as child processes; a supervisor for each starts it again when it
// has ended, as docker or systemd do. It keeps a load of agent executions whose
// tools call a ledger in this process. Meanwhile a planner, which a seed
// determines, kills processes with SIGKILL or stops them for a while.
//
//	           load ──────────── submits, answers questions, looks at every end
//	            │
//	NATS ── coordinators ── Redis          planner ── kills and pauses ──▶ fleet
//	  │
//	workers ── tools ──▶ ledger            accounting ◀── load, ledger, servers
//
// The ledger counts every request as an effect under its Idempotency-Key. A
// request that comes again under its key is a repeated attempt, which a receiver
// that knows keys does not notice; one under another key would be a second effect.
// When the time is over, everything is started again and gets a minute to come to
// rest. The promise held when every execution ended with the right answer, every
// effect was there under one key, and nothing was left behind.
package chaos
