// Package queue is the transport on NATS: job stream, results, submissions,
// API, live notices and large payloads. It is never the only copy of anything:
// what is lost here is published again from Redis.
package queue
