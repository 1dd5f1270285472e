package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// A job that must not run twice is asked for before it is run, also a new one.
func TestAJobThatMustNotRunTwiceIsAskedFor(t *testing.T) {
	for verdict, runs := range map[string]bool{queue.VerdictRun: true, queue.VerdictDrop: false} {
		synctest.Test(t, func(t *testing.T) {
			w := &world{verdict: verdict}
			ran := false
			worker := start(t, w, func(context.Context) error { ran = true; return nil })
			d := newDelivery("x_1")
			d.job.Once = true
			w.jobs <- d
			synctest.Wait()
			worker.Stop(t.Context())
			require.Equal(t, 1, w.asked())
			require.Equal(t, runs, ran)
		})
	}
}

// A worker that stops tells that a job is given back, so that it does not count as
// lost; what must not run twice and has begun ends with an outcome that is not known.
func TestStopTellsWhatIsHandedBack(t *testing.T) {
	for _, once := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := &world{verdict: queue.VerdictRun}
			worker := start(t, w, untilStopped)
			d := newDelivery("x_1")
			d.job.Once = once
			w.jobs <- d
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			worker.Stop(ctx)
			result := <-w.results
			require.Equal(t, !once, result.HandedBack)
			if once {
				require.Equal(t, engine.ReasonWorkerLost, result.Result.Error.Reason)
				require.NotContains(t, d.told(), "nak")
			} else {
				require.Nil(t, result.Result.Error)
				require.Contains(t, d.told(), "nak")
			}
		})
	}
}

// Node code that ignores its context does not keep its slot: neither beyond its
// deadline nor after it was cancelled.
func TestCodeThatDoesNotEndKeepsNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		end := make(chan struct{})
		worker := start(t, w, func(context.Context) error { <-end; return nil })
		d := newDelivery("x_1")
		d.job.Deadline = time.Now().Add(5 * time.Second).UnixMilli()
		began := time.Now()
		w.jobs <- d
		result := <-w.results
		require.Equal(t, 5*time.Second+abandonAfter, time.Since(began))
		require.Equal(t, engine.ReasonTimeout, result.Result.Error.Reason)
		require.Contains(t, d.told(), "done")

		cancelled := newDelivery("x_2")
		w.jobs <- cancelled
		synctest.Wait()
		worker.Drop([]engine.JobID{"x_2"})
		time.Sleep(abandonAfter) // the clock of the test
		synctest.Wait()
		require.False(t, worker.Holds("x_2"))
		require.Contains(t, cancelled.told(), "done")
		require.EqualValues(t, 2, worker.Abandoned())

		close(end)
		synctest.Wait()
		require.Zero(t, worker.Abandoned())
		worker.Stop(t.Context())
	})
}

// Jobs that were lost again and again run one at a time: what kills a worker takes no other
// with it for good.
func TestJobsLostAgainAndAgainRunAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{verdict: queue.VerdictRun}
		end := make(chan struct{})
		worker := start(t, w, func(context.Context) error { <-end; return nil })
		suspect, other, fresh := newDelivery("x_1"), newDelivery("y_1"), newDelivery("z_1")
		suspect.deliveries, other.deliveries = 3, 3
		w.jobs <- suspect
		synctest.Wait()
		w.jobs <- other
		w.jobs <- fresh
		synctest.Wait()
		require.True(t, worker.Holds("x_1"))
		require.False(t, worker.Holds("y_1"))
		require.Contains(t, other.told(), "nak")
		require.True(t, worker.Holds("z_1"), "others are not concerned")
		require.Equal(t, 1, w.asked(), "a job that was not begun is not counted")
		end <- struct{}{}
		end <- struct{}{}
		synctest.Wait()
		w.jobs <- other
		synctest.Wait()
		require.True(t, worker.Holds("y_1"))
		close(end)
		worker.Stop(t.Context())
	})
}
