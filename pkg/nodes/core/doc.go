// Package core holds the node types that move and shape items: triggers, Set,
// If, Filter, Switch, Merge, Loop Over Items, Limit, Code with its relatives, Execution Data, Stop
// and Error and the nodes of n8n's tutorials. Names, versions, parameters and what comes out are n8n's.
//
// Apart from Code they are cheap and pure, so the coordinator may run them
// itself. A parameter that is absent has n8n's default for that version.
package core

import "github.com/reprise-engine/reprise/pkg/node"

// Types lists all node types of the package.
func Types() []*node.Type {
	return node.Supporting(append(Triggers(),
		NoOp(), Set(), SetOld(), If(), IfOld(), Filter(), FilterOld(), Switch(), SwitchOld(),
		Merge(), MergeOld(), Loop(), Limit(), Code(), AITransform(), Function(), FunctionItem(), StopAndError(), ExecutionData(),
		CustomerDatastore(), CustomerMessenger(),
	), supported)
}
