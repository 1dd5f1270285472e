// Package tables is the Data Table node and the tool of that name: rows that are kept between
// executions, in tables of columns with types. Names, versions and parameters are n8n's.
//
// The tables are the coordinators' (node.Services.Tables), who fulfil a request once under its key.
// The key is that of the run and the item it begins with, so a run that is repeated, since its worker
// died or the node failed at a later item and is tried again, writes nothing twice and goes on with
// what it had been answered. The items of a run share requests, in the order of the items.
//
// A file from n8n names a table by an id that is not known here. It names it by its name too, and
// that one is used when there is no table of the id.
package tables

import (
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/fromai"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// TypeTable is the name of the node type.
const TypeTable = "n8n-nodes-base.dataTable"

// Types lists all node types of the package.
func Types() []*node.Type {
	return fromai.WithTools([]*node.Type{{
		Spec: workflow.Spec{Type: TypeTable, Versions: []float64{1, 1.1}},
		Support: node.Support{
			Options: []string{"dryRun", "optimizeBulk", "createIfNotExists", "filterName", "sortField", "sortDirection"},
			Note: "tables are made with `reprise tables`, or by the node; one that a file names by the id of another installation is found " +
				"by its name; what is empty is not equal to a value, and less and greater than none",
		},
		Execute: execute,
	}}, map[string]fromai.Variant{TypeTable: {Description: "Reads and changes the rows of a data table"}})
}
