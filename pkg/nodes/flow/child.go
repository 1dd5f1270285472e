package flow

import (
	"encoding/json"
	"fmt"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// childFailure is why a child is no success, nil when it is one (or, detached, was
// stored). A nil result is a child that had not ended in time.
func childFailure(c *engine.ChildResult) *engine.NodeError {
	if c == nil {
		return &engine.NodeError{
			Name: "NodeOperationError", Message: "The sub-workflow did not finish in the time the node has",
			Description: "Raise the node's timeout, or do not wait for the sub-workflow.", Reason: engine.ReasonTimeout,
		}
	}
	failure := engine.NodeError{Name: "NodeOperationError"}
	if c.Error != nil {
		failure.Message, failure.Description = c.Error.Message, c.Error.Description
		failure.Reason, failure.HTTPCode = c.Error.Reason, c.Error.HTTPCode
		if c.Error.Name != "" {
			failure.Name = c.Error.Name
		}
	}
	switch c.Status {
	case engine.StatusCanceled:
		// The class of a canceled execution's error is not that of the node's.
		failure.Name, failure.Description = "NodeOperationError", failure.Message
		if failure.Reason == engine.ReasonTimeout {
			failure.Message = fmt.Sprintf("The sub-workflow timed out (execution %s)", c.Execution)
			break
		}
		failure.Message = fmt.Sprintf("The sub-workflow was canceled (execution %s)", c.Execution)
		if failure.Reason == "" {
			failure.Reason = engine.ReasonCanceled
		}
	case engine.StatusError:
		if failure.Message == "" {
			failure.Message = fmt.Sprintf("The sub-workflow failed (execution %s)", c.Execution)
		}
	default:
		if c.Error == nil {
			return nil
		}
	}
	return &failure
}

// link is the metadata of an item that a child gave out, or of the error in the
// place of its items. nil when there is no execution to point to.
func link(call *node.Call, c *engine.ChildResult, counted bool) json.RawMessage {
	if c == nil || c.Execution == "" {
		return nil
	}
	var metadata struct {
		SubExecution engine.ExecutionRef `json:"subExecution"`
		Count        int                 `json:"subExecutionsCount,omitempty"`
	}
	metadata.SubExecution = engine.ExecutionRef{ExecutionID: c.Execution, WorkflowID: c.WorkflowID}
	if c.WorkflowID == "" { // a document without an id belongs to the workflow that holds it
		metadata.SubExecution.WorkflowID = call.Workflow.ID
	}
	if counted {
		metadata.Count = 1
	}
	raw, err := json.Marshal(metadata)
	if err != nil {
		return nil // cannot happen: two texts and a number
	}
	return raw
}

// childItems are the items of the first output of a child's last node, with their
// lineage and links within the child left out.
func childItems(c *engine.ChildResult) workflow.Items {
	if len(c.Outputs) == 0 {
		return nil
	}
	items := make(workflow.Items, len(c.Outputs[0]))
	for i, item := range c.Outputs[0] {
		items[i] = workflow.Item{JSON: item.JSON, Binary: item.Binary}
	}
	return items
}

// lostOutputs remarks on items that the last node of a child gave out on other
// outputs than the first, since they go nowhere.
func lostOutputs(c *engine.ChildResult) []engine.Hint {
	for n := 1; n < len(c.Outputs); n++ {
		if count := len(c.Outputs[n]); count > 0 {
			return []engine.Hint{{Message: fmt.Sprintf("Output %d of the sub-workflow's last node has %d items that are not given out here: "+
				"only its first output is. End the sub-workflow with a single node to which all branches lead.", n+1, count)}}
		}
	}
	return nil
}
