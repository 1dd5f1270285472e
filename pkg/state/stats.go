package state

import (
	"context"
	"net"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// Stats are counters since Open.
type Stats struct {
	RoundTrips uint64 // waits for Redis: single commands and pipelines
	Commands   uint64 // commands in them
	Bytes      uint64 // length of the commands' arguments
	Commits    uint64 // executions committed, without replays
	Conflicts  uint64 // commits refused for a stale version
	Replays    uint64 // commits that had been applied already
	Full       uint64 // commits refused at maxmemory
	Reloads    uint64 // times the scripts had to be loaded again
}

type counters struct {
	roundTrips, commands, bytes, commits, conflicts, replays, full, reloads atomic.Uint64
}

// Stats returns the counters.
func (s *Store) Stats() Stats {
	c := &s.count
	return Stats{
		RoundTrips: c.roundTrips.Load(), Commands: c.commands.Load(), Bytes: c.bytes.Load(), Commits: c.commits.Load(), Conflicts: c.conflicts.Load(),
		Replays: c.replays.Load(), Full: c.full.Load(), Reloads: c.reloads.Load(),
	}
}

var _ redis.Hook = (*counters)(nil)

// DialHook implements redis.Hook.
func (c *counters) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook implements redis.Hook.
func (c *counters) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.roundTrips.Add(1)
		c.commands.Add(1)
		c.bytes.Add(argumentBytes(cmd))
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (c *counters) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.roundTrips.Add(1)
		c.commands.Add(uint64(len(cmds)))
		var size uint64
		for _, cmd := range cmds {
			size += argumentBytes(cmd)
		}
		c.bytes.Add(size)
		return next(ctx, cmds)
	}
}

// argumentBytes is the length of a command's texts; numbers are too short to count.
func argumentBytes(cmd redis.Cmder) (n uint64) {
	for _, arg := range cmd.Args() {
		switch v := arg.(type) {
		case string:
			n += uint64(len(v))
		case []byte:
			n += uint64(len(v))
		}
	}
	return n
}
