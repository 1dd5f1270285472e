// Package flow holds the node types that make an execution wait or start
// others. Names, versions, parameters and what comes out are n8n's.
//
// Each of them is called twice. The first call returns an engine.Wait and holds
// nothing while it lasts; the second, with Call.Resumption set, gives the result:
//
//   - Wait ends after an interval, at a moment, or when the execution's resume URL
//     is called. It gives out its input; after a call of the URL one item that is
//     the call: {"headers", "params", "query", "body"}.
//   - Execute Sub-workflow starts one child with all items or a child per item and
//     gives out what their last nodes gave out on their first output. Items of a
//     child per item are paired with that item and carry {"subExecution": …} as
//     metadata. When it does not wait for its children it gives out what it gave
//     them. A child that failed, was canceled or ran too long fails the node; a
//     node that continues on errors has {"error": message} in the place of its items.
//   - Workflow Tool starts one child with the model's arguments and answers with
//     the items of its last node (before version 2.1 with the first one, before 1.3
//     with one field of it).
//
// What a second call must know is in its Resumption or follows from the inputs, so
// nothing is kept between the two.
package flow

import "github.com/reprise-engine/reprise/pkg/node"

const (
	base   = "n8n-nodes-base."
	family = "@n8n/n8n-nodes-langchain."
)

// Types lists all node types of the package.
func Types() []*node.Type {
	return node.Supporting([]*node.Type{Wait(), ExecuteWorkflow(), WorkflowTool()}, supported)
}
