// Package embedded starts the two servers that reprise stands on inside, or as
// children of, the calling process, so that `reprise run`, `reprise dev` and
// tests run the same coordinator and worker code as a fleet does.
//
// NATS is the nats-server module itself. Redis is a real redis-server child
// process when one is on PATH, else miniredis, which keeps everything in memory
// and forgets it at Shutdown.
//
// A server given a directory locks it: two processes that opened the same
// store would corrupt it without either noticing.
package embedded
