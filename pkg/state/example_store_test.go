package state_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/alicebob/miniredis/v2"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/state"
)

// An execution is created, taken forward and finished; a writer that was too
// late is told so.
func ExampleStore_Commit() {
	redis, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	defer redis.Close()
	ctx := context.Background()
	store, err := state.Open(ctx, state.Config{URL: "redis://" + redis.Addr()})
	if err != nil {
		panic(err)
	}
	defer store.Close()

	record := []engine.Change{{Table: engine.TableRun, Field: "0:Start", Value: []byte(`{}`)}}
	fmt.Println(store.Commit(ctx, []state.Commit{
		{Execution: "order-17", Version: 0, Token: "t1", Status: engine.StatusRunning, At: 1000, NextSweep: 16000},
	}))
	fmt.Println(store.Commit(ctx, []state.Commit{
		{Execution: "order-17", Version: 1, Token: "t2", Status: engine.StatusRunning, At: 1001, Changes: record},
	}))
	late := store.Commit(ctx, []state.Commit{
		{Execution: "order-17", Version: 1, Token: "t3", Status: engine.StatusRunning, At: 1002, Changes: record},
	})
	fmt.Println(errors.Is(late[0], state.ErrConflict))
	fmt.Println(store.Commit(ctx, []state.Commit{
		{Execution: "order-17", Version: 2, Token: "t4", Status: engine.StatusSuccess, Finished: true, At: 1003},
	}))
	stored, err := store.Load(ctx, []engine.ExecutionID{"order-17"})
	if err != nil {
		panic(err)
	}
	fmt.Println(stored[0].Version, stored[0].Status)
	// Output:
	// [<nil>]
	// [<nil>]
	// true
	// [<nil>]
	// 3 success
}
