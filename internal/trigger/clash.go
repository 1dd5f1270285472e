package trigger

import (
	"context"
	"fmt"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// CheckClashes says which of a workflow's calls another active workflow has already. id is what the workflow
// is stored under. Two that become active at the same moment may both pass; a Host then
// gives the calls to the first.
func CheckClashes(ctx context.Context, e Evaluator, store Store, id string, w *workflow.Workflow) error {
	hooks, err := hooksOf(ctx, e, &source{id: id, workflow: w})
	if err != nil || len(hooks) == 0 {
		return err
	}
	wanted := map[string]*hook{}
	for _, h := range hooks {
		for _, m := range h.methods {
			wanted[m+" "+h.base+h.shape()] = h
		}
	}
	records, err := store.NamedWorkflows(ctx)
	if err != nil {
		return fmt.Errorf("look for workflows with the same triggers: %w", err)
	}
	for _, r := range records {
		if !r.Active || r.ID == id {
			continue
		}
		document, err := store.Workflow(ctx, r.Hash)
		if err != nil {
			return fmt.Errorf("look for workflows with the same triggers: %w", err)
		}
		other, err := workflow.Parse(document)
		if err != nil {
			continue // it is not hosted
		}
		theirs, err := hooksOf(ctx, e, &source{id: r.ID, workflow: other})
		if err != nil {
			continue // it is not hosted either
		}
		for _, h := range theirs {
			for _, m := range h.methods {
				if own := wanted[m+" "+h.base+h.shape()]; own != nil {
					return fmt.Errorf("%s %s%s of node %q is taken by node %q in the active workflow %q: choose another path, or deactivate that one",
						m, own.base, own.path, own.node.Name, h.node.Name, r.ID)
				}
			}
		}
	}
	return nil
}
