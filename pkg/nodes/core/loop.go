package core

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Loop (Loop Over Items, Split in Batches) hands out its items batch by batch:
// each time something comes back it gives the next batch, and at the end all
// that came back.
//
// It stores no items. Its context says in which run the loop began and how
// many items were handed out; the items are read again from the records that
// fed that run and the ones since.
func Loop() *node.Type {
	return &node.Type{
		Spec: workflow.Spec{
			Type: base + "splitInBatches", Versions: []float64{1, 2, 3},
			Outputs: func(n *workflow.Node) int {
				if n.TypeVersion < 2 {
					return 1
				}
				return 2
			},
		},
		Inline:  true,
		History: true,
		Execute: executeLoop,
	}
}

// loopState is what a loop keeps between its runs.
type loopState struct {
	Start int `json:"start"` // the run that brought the items to loop over
	Next  int `json:"next"`  // how many of them were handed out
	// Done: the loop has come to its end.
	Done bool `json:"done,omitempty"`
	// Items are kept only when no record holds them (the loop was given the
	// execution's own input).
	Items workflow.Items `json:"items,omitempty"`
}

func executeLoop(ctx context.Context, call *node.Call) (*node.Result, error) {
	fallback := 1
	if call.Node.TypeVersion < 2 {
		fallback = 10
	}
	size, err := call.Int(ctx, 0, "batchSize", fallback)
	if err != nil {
		return nil, err
	}
	size = max(size, 1)
	reset, err := flag(ctx, call, 0, "options.reset", false)
	if err != nil {
		return nil, err
	}
	state, err := readLoop(call, reset)
	if err != nil {
		return nil, err
	}
	items, origin, err := loopItems(call, &state)
	if err != nil {
		return nil, err
	}
	batch := make(workflow.Items, 0, size)
	for i := state.Next; i < len(items) && i < state.Next+size; i++ {
		item := items[i]
		item.PairedItem = workflow.PairedItems{{Item: i, SourceOverwrite: origin}}
		batch = append(batch, item)
	}
	state.Next += len(batch)
	state.Done = len(batch) == 0

	var done workflow.Items
	if len(batch) == 0 && call.Node.TypeVersion >= 2 {
		if done, err = loopResults(call, state.Start); err != nil {
			return nil, err
		}
	}
	var result *node.Result
	switch {
	case call.Node.TypeVersion >= 3:
		result = node.Outputs(done, batch)
	case call.Node.TypeVersion >= 2:
		result = node.Outputs(batch, done)
	case len(batch) == 0:
		result = &node.Result{} // the first version just ends its branch
	default:
		result = node.Outputs(batch)
	}
	if result.Context, err = json.Marshal(state); err != nil {
		return nil, fmt.Errorf("store the state of the loop: %w", err)
	}
	return result, nil
}

func readLoop(call *node.Call, reset bool) (loopState, error) {
	state := loopState{Start: call.RunIndex}
	if reset || len(call.Context) == 0 {
		return state, nil
	}
	if err := json.Unmarshal(call.Context, &state); err != nil {
		return state, fmt.Errorf("read the state of the loop: %w", err)
	}
	if state.Done && enteredAnew(call, state.Start) {
		return loopState{Start: call.RunIndex}, nil
	}
	return state, nil
}

// enteredAnew reports whether this run is fed by what fed the run that the loop
// began with, and not by something that comes back: then a loop within a loop begins
// again. n8n gives out its old results instead.
func enteredAnew(call *node.Call, start int) bool {
	now, then := sourceOf(call.Source), sourceOf(call.RunData.Sources(call.Node.Name, start))
	return now != nil && then != nil && now.PreviousNode == then.PreviousNode && now.PreviousNodeOutput == then.PreviousNodeOutput
}

// loopItems returns the items looped over and, in later runs, where they came
// from.
func loopItems(call *node.Call, state *loopState) (workflow.Items, *workflow.Source, error) {
	if state.Start == call.RunIndex {
		items := call.Input(0)
		if sourceOf(call.Source) == nil {
			state.Items = items
		}
		return items, nil, nil
	}
	if state.Items != nil {
		return state.Items, nil, nil
	}
	return recorded(call, state.Start)
}

// loopResults returns what came back in the runs since the loop began.
func loopResults(call *node.Call, start int) (workflow.Items, error) {
	var all workflow.Items
	for run := start + 1; run <= call.RunIndex; run++ {
		items, origin, err := recorded(call, run)
		if err != nil {
			return nil, err
		}
		for i, item := range items {
			item.PairedItem = workflow.PairedItems{{Item: i, SourceOverwrite: origin}}
			all = append(all, item)
		}
	}
	return all, nil
}

// recorded returns the items that one run of this node was given.
func recorded(call *node.Call, run int) (workflow.Items, *workflow.Source, error) {
	if run == call.RunIndex {
		return call.Input(0), sourceOf(call.Source), nil
	}
	source := sourceOf(call.RunData.Sources(call.Node.Name, run))
	if source == nil {
		return nil, nil, fmt.Errorf("run %d of the loop is not in the run data", run)
	}
	items, ok := call.RunData.Items(source.PreviousNode, source.PreviousNodeRun, source.PreviousNodeOutput)
	if !ok {
		return nil, nil, fmt.Errorf("run %d of %q, which fed the loop, is not in the run data", source.PreviousNodeRun, source.PreviousNode)
	}
	if call.Node.ExecuteOnce && len(items) > 1 {
		items = items[:1]
	}
	return items, source, nil
}

func sourceOf(sources []*workflow.Source) *workflow.Source {
	if len(sources) == 0 {
		return nil
	}
	return sources[0]
}
