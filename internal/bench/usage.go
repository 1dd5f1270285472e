package bench

import (
	"context"
	"time"

	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
)

// usage is what was used up to a moment.
type usage struct {
	process, redis time.Duration
	redisKnown     bool
	store          state.Stats
	queue          queue.Stats // sum over all connections of this process
}

func (b *bench) usage(ctx context.Context) usage {
	u := usage{process: processCPU()}
	if b.redis != nil {
		u.redis, u.redisKnown = redisCPU(ctx, b.redis)
	}
	u.add(b.conn)
	if b.stack == nil {
		return u
	}
	for _, p := range b.stack.Coordinators {
		u.add(p.Queue)
		s := p.Store.Stats()
		u.store.RoundTrips += s.RoundTrips
		u.store.Bytes += s.Bytes
		u.store.Commits += s.Commits
	}
	for _, p := range b.stack.Workers {
		u.add(p.Queue)
	}
	return u
}

func (u *usage) add(conn *queue.Conn) {
	s := conn.Stats()
	q := &u.queue
	q.Published += s.Published
	q.JobBytes += s.JobBytes
	q.ResultsSent += s.ResultsSent
	q.ResultBytes += s.ResultBytes
	q.InMsgs += s.InMsgs
	q.OutMsgs += s.OutMsgs
	q.InBytes += s.InBytes
	q.OutBytes += s.OutBytes
}

func (u usage) minus(o usage) usage {
	u.process -= o.process
	u.redis -= o.redis
	u.store.RoundTrips -= o.store.RoundTrips
	u.store.Bytes -= o.store.Bytes
	u.store.Commits -= o.store.Commits
	q := &u.queue
	q.Published -= o.queue.Published
	q.JobBytes -= o.queue.JobBytes
	q.ResultsSent -= o.queue.ResultsSent
	q.ResultBytes -= o.queue.ResultBytes
	q.InMsgs -= o.queue.InMsgs
	q.OutMsgs -= o.queue.OutMsgs
	q.InBytes -= o.queue.InBytes
	q.OutBytes -= o.queue.OutBytes
	return u
}

// sizes are the means of the engine's messages.
func (u usage) sizes(submit int) floorSizes {
	mean := func(bytes, n uint64) int { return int(bytes / max(n, 1)) }
	return floorSizes{
		submitBytes: submit, jobBytes: mean(u.queue.JobBytes, u.queue.Published),
		resultBytes: mean(u.queue.ResultBytes, u.queue.ResultsSent), commitBytes: mean(u.store.Bytes, u.store.Commits),
	}
}

func (r *Report) setUsage(u usage, n float64, all bool) {
	r.ProcessCPU = round(u.process.Seconds()*1000/n, 3)
	r.CPUSeconds = round((u.process + u.redis).Seconds(), 3)
	r.CPUPerExecution = round((u.process+u.redis).Seconds()*1000/n, 3)
	if u.redisKnown {
		r.RedisCPU = known(u.redis.Seconds()*1000/n, 3)
	}
	if !all {
		return
	}
	r.RedisRoundTrips = known(float64(u.store.RoundTrips)/n, 3)
	r.RedisCommits = known(float64(u.store.Commits)/n, 2)
	r.RedisBytes = known(float64(u.store.Bytes)/n, 0)
	r.NATSMessages = known(float64(u.queue.InMsgs+u.queue.OutMsgs)/n, 1)
	r.NATSBytes = known(float64(u.queue.InBytes+u.queue.OutBytes)/n, 0)
	r.Jobs = known(float64(u.queue.Published)/n, 2)
}

// setFloor takes the better of the floor's runs: the worse one had other company.
func (r *Report) setFloor(runs []*floorResult) {
	var best *floorResult
	for _, f := range runs {
		r.FloorRunsPerSecond = append(r.FloorRunsPerSecond, round(f.perSecond, 1))
		if best == nil || f.perSecond > best.perSecond {
			best = f
		}
	}
	if best == nil {
		return
	}
	cpu := best.cpu.Seconds() * 1000
	r.FloorPerSecond, r.FloorRatio = known(best.perSecond, 1), known(r.ExecutionsPerSecond/best.perSecond, 3)
	r.FloorCPU, r.FloorNATSMessages = known(cpu, 3), known(best.messages, 1)
	if cpu > 0 {
		r.CPURatio = known(r.CPUPerExecution/cpu, 2)
	}
}
