package queue

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/natstest"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// BenchmarkLoop measures publish, delivery, result, acknowledgement and answer
// of jobs with 2 KB of data, with a real server process: at a given number of jobs
// in flight, over 64 slots.
func BenchmarkLoop(b *testing.B) {
	for _, inFlight := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("inflight=%d", inFlight), func(b *testing.B) { benchmarkLoop(b, inFlight, 64) })
	}
	b.Run("inflight=64/slots=4", func(b *testing.B) { benchmarkLoop(b, 64, 4) })
}

func benchmarkLoop(b *testing.B, inFlight, slots int) {
	server := natstest.Start(b, natstest.Options{})
	coordinator, worker := connect(b, server.URL), connect(b, server.URL)
	require.NoError(b, coordinator.EnsureStreams(b.Context(), Streams{}))
	text := json.RawMessage(`{"text":"` + strings.Repeat("x", 1500) + `"}`)
	answered := make(chan struct{}, 1<<16)
	stop, err := coordinator.ServeResults("c1", func(r *Result, _ int, reply func(Reply)) {
		if err := coordinator.Ack(r.Ack); err != nil {
			b.Error(err)
		}
		reply(Reply{Verdict: VerdictOK})
		answered <- struct{}{}
	})
	require.NoError(b, err)
	defer stop()
	j := jobs(b, worker, WorkerConfig{Slots: slots})
	var workers sync.WaitGroup
	for range slots {
		workers.Go(func() {
			for {
				d, err := j.Next(b.Context())
				if err != nil {
					return
				}
				d.Done()
				r := result(d, "")
				r.Result.Outputs[0][0].JSON = d.Job().Inputs[0][0].JSON
				if _, err := worker.SendResult(b.Context(), "c1", r); err != nil {
					b.Error(err)
				}
			}
		})
	}
	n := 0
	send := func(count int) {
		batch := make([]*Job, 0, count)
		for range count {
			one := job(n)
			one.ID = engine.JobID(fmt.Sprintf("bench_%d", n))
			one.Inputs = []workflow.Items{{{JSON: text}}}
			batch = append(batch, one)
			n++
		}
		p := coordinator.StartPublish(b.Context(), batch)
		go func() {
			for _, err := range p.Wait() {
				if err != nil {
					b.Error(err)
				}
			}
		}()
	}
	before, beforeWorker := coordinator.Stats(), worker.Stats()
	b.ResetTimer()
	started := time.Now()
	send(min(inFlight, b.N))
	for done := 0; done < b.N; {
		<-answered
		got := 1
		for more := true; more; {
			select {
			case <-answered:
				got++
			default:
				more = false
			}
		}
		done += got
		if left := b.N - n; left > 0 {
			send(min(got, left))
		}
	}
	elapsed := time.Since(started)
	b.StopTimer()
	after, afterWorker := coordinator.Stats(), worker.Stats()
	messages := after.InMsgs + after.OutMsgs + afterWorker.InMsgs + afterWorker.OutMsgs -
		before.InMsgs - before.OutMsgs - beforeWorker.InMsgs - beforeWorker.OutMsgs
	b.ReportMetric(float64(b.N)/elapsed.Seconds(), "jobs/s")
	b.ReportMetric(float64(messages)/float64(b.N), "msgs/job")
	b.ReportMetric(float64(afterWorker.Pulls-beforeWorker.Pulls)/float64(b.N), "pulls/job")
	j.Stop()
	workers.Wait()
	info, err := coordinator.js.Stream(b.Context(), StreamJobs)
	require.NoError(b, err)
	require.Eventually(b, func() bool { return queued2(b, info) == 0 }, 5*time.Second, 5*time.Millisecond)
}

func queued2(b *testing.B, s jetstream.Stream) uint64 {
	info, err := s.Info(b.Context())
	require.NoError(b, err)
	return info.State.Msgs
}
