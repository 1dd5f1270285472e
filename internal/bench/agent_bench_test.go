package bench

import (
	"testing"

	"go.uber.org/zap"
)

// BenchmarkAgent is the way of an agent execution through everything, 64 at the same time: what it
// takes of memory, commits and messages does not depend on the machine, so a change of these is one
// of the program.
func BenchmarkAgent(b *testing.B) {
	own := &bench{config: Config{Coordinators: 1, Workers: 1, WorkerConcurrency: 128, Log: zap.NewNop()}}
	defer own.close()
	if err := own.open(b.Context()); err != nil {
		b.Fatal(err)
	}
	silent := func(string, int, int) {}
	if _, err := own.client.load(b.Context(), "", warmUp, 0, 64, silent); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	before := own.usage(b.Context())
	b.ResetTimer()
	out, err := own.client.load(b.Context(), "", b.N, 0, 64, silent)
	b.StopTimer()
	if err != nil {
		b.Fatal(err)
	}
	used, n := own.usage(b.Context()).minus(before), float64(b.N)
	b.ReportMetric(n/out.seconds, "executions/s")
	b.ReportMetric(float64(used.store.Commits)/n, "commits/op")
	b.ReportMetric(float64(used.store.Bytes)/n, "redis-B/op")
	b.ReportMetric(float64(used.queue.InMsgs+used.queue.OutMsgs)/n, "msgs/op")
	b.ReportMetric(float64((used.process+used.redis).Microseconds())/n, "cpu-us/op")
}
