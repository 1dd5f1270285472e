// Package state keeps executions in Redis. It is the only copy that counts:
// what is not committed here has not happened.
//
// # Layout
//
// Executions are spread over 256 shards by a hash of their id. All keys of a
// shard carry the hash tag {sNNN}, so that one script may touch an execution and
// its shard's indexes on Redis Cluster too. An execution is four hashes, the
// engine's tables; a shard has sorted sets that say which executions somebody still has
// to look after, which timers are set, which questions are open and what exists. What
// belongs to no execution (workflows, their ids, shared secrets) has keys without a shard.
// keys.go lists them all.
//
// # Commit
//
// Store.Commit writes the changes of many executions in one pipelined round
// trip, each with one Lua script: compare the version, write the changed fields,
// move the index entries, set the next version. Its cost depends on the size of
// the changes and not on the age of the execution.
//
// A stale version is refused with ErrConflict: the caller loads the execution
// again and applies its event again. Nothing else protects an execution; who
// "owns" it is only a matter of speed.
//
// # Lost replies
//
// A commit whose reply was lost may have been applied. It is repeated, by the
// client library or by the caller, with the same Token; the execution remembers
// the tokens of its last eight commits, so the repeat answers success without
// writing again, also when others have committed in between. After more than
// eight it answers ErrConflict, which is safe as well: the caller loads, and
// the engine recognises the event as applied. The tokens are what spares that
// detour, not what makes it correct.
//
// # Timers and sweeps
//
// Due timers and sweeps are claimed: a script takes them and puts them off, so that
// of several callers one gets each. The commit that handles a timer clears it; when the
// claimer died there is none, and it comes up again at the end of the claim.
//
// A Store remembers when something is due in each shard, as far as it has set or read it, so
// that an idle look costs nothing. Config.LookEvery says how often it reads all shards (256
// small reads in one round trip, one command when nothing is set at all), to learn what others have
// set. That is soon enough for what is due later than that. What is due sooner is
// taken in time by the process that has set it, or, when that has died, by another one after
// LookEvery at most.
//
// # Open questions
//
// What is asked of people is part of the execution. Questions is only an index
// of it, written by the commit that asks or answers, so it can never show a question that
// is over or miss one that is open.
//
// # The end of an execution
//
// A parent, an error workflow, children to cancel: others may have to be told of
// an end, and whoever committed it may die before they are. Such an end is committed
// Unsettled, which keeps the execution among those that ClaimStale hands out, though it is
// over and has its expiry:
//
//	running ──commit, Unsettled──> over, still swept ──Settle──> over
//	running ──commit─────────────────────────────────────────────> over
//
// The caller tells them right after the commit and calls Settle, or does so when the
// sweep comes to it; those who are told must bear to be told twice. Settle leaves
// what is unfinished alone and takes what is gone. What could not be told within the
// retention is lost with the execution: Prune removes it, and Load no longer finds it.
// Delete refuses an unsettled execution (ErrUnsettled).
//
// # Expiry
//
// Keys of an unfinished execution never have an expiry. The commit that
// finishes it gives all of them one (Config.Retention), and from then on commits are
// refused with ErrFinished. Prune removes the index entries of what expired, that of an
// unsettled execution's sweep included.
// A stored workflow never expires, as an execution that waits may need it in a
// year: it is kept once per content, so it grows with edits and not with runs. The
// records of workflows by id, secrets and open questions do not expire either.
//
// # Out of memory
//
// At maxmemory (policy noeviction) Redis refuses what creates an execution or
// takes it forward: ErrFull, and nothing is changed. What finishes an execution,
// claims timers, deletes or prunes is let through, as Redis refuses a script only
// at a first write that may need memory, and these scripts begin with a removal.
// So what is running can be cancelled, and memory comes back with the expiry.
//
// A waiting execution of 1 KB takes 2.2 KB of the server's memory with
// hash-max-listpack-value 1024 and hash-max-listpack-entries 64, and 3 KB with the
// defaults of Redis (measured, version 7.0).
//
// # Faults
//
// A Store survives its Redis: every call fails within seconds while Redis is
// away (ErrUnavailable) and works again once it is back. Scripts that a restart
// forgot are loaded again within the call.
package state
