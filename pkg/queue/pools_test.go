package queue

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// A pool with two slots of a worker's eight never has three jobs, the others use what is free.
func TestPoolSlots(t *testing.T) {
	coordinator, worker := start(t)
	var all []*Job
	for n := range 60 {
		j := job(n)
		if n%2 == 0 {
			j.ID, j.Pool = engine.JobID(fmt.Sprintf("exec-1_%d", n)), "gpu"
		}
		all = append(all, j)
	}
	publish(t, coordinator, all...)
	consumer := jobs(t, worker, WorkerConfig{Slots: 8, PoolSlots: map[string]int{"gpu": 2}}, "default", "gpu")
	var held []*JobDelivery
	most := map[string]int{}
	done := map[engine.JobID]bool{}
	for len(done) < len(all) {
		if len(held) == 8 || len(held) > 0 && len(held)+len(done) == len(all) {
			d := held[0]
			held = held[1:]
			require.NoError(t, coordinator.Ack(d.Ack()))
			done[d.Job().ID] = true
			d.Done()
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		d, err := consumer.Next(ctx)
		cancel()
		if err != nil { // nothing can come until a slot is free
			require.NotEmpty(t, held)
			d = held[0]
			held = held[1:]
			require.NoError(t, coordinator.Ack(d.Ack()))
			done[d.Job().ID] = true
			d.Done()
			continue
		}
		held = append(held, d)
		count := map[string]int{}
		for _, h := range held {
			count[poolName(h.Job().Pool)]++
		}
		for pool, n := range count {
			most[pool] = max(most[pool], n)
		}
	}
	require.Equal(t, 2, most["gpu"])
	require.Greater(t, most["default"], 2)
	require.EqualValues(t, 0, worker.Stats().Naks, "no job had to be handed back")
}

func TestNotices(t *testing.T) {
	a, b := start(t)
	workers, coordinators, settled := make(chan WorkerNotice, 9), make(chan CoordinatorNotice, 9), make(chan []engine.JobID, 9)
	stop, err := a.ServeNotices(func(n WorkerNotice) { workers <- n }, func(n CoordinatorNotice) { coordinators <- n }, func(ids []engine.JobID) { settled <- ids })
	require.NoError(t, err)
	defer stop()
	w := WorkerNotice{ID: "1", Name: "w", Slots: 4, Pools: map[string]int{"default": 4}, Draining: true}
	require.NoError(t, b.AnnounceWorker(w))
	require.NoError(t, b.AnnounceCoordinator(CoordinatorNotice{ID: "c", Pools: map[string]PoolNotice{"default": {Waiting: 3}}}))
	var ids []engine.JobID
	for n := range maxDrop + 1 {
		ids = append(ids, engine.JobID(fmt.Sprint(n)))
	}
	require.NoError(t, b.AnnounceSettled(ids))
	w.Version = Version
	require.Equal(t, w, <-workers)
	require.Equal(t, 3, (<-coordinators).Pools["default"].Waiting)
	require.Equal(t, ids, append(<-settled, <-settled...))
}
