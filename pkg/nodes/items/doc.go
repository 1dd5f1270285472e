// Package items holds the node types that rearrange items: Split Out,
// Aggregate, Summarize, Sort, Remove Duplicates, Rename Keys, Compare Datasets
// and their predecessor Item Lists. Names, versions, parameters and what comes
// out are n8n's.
//
// A field is named by a path (a.b, a[0].b) unless the option Disable Dot
// Notation makes its name the whole key. Fields are names, not values: an
// expression that gives the field's content is refused with a word on that.
//
// Apart from Sort, Item Lists (which may run code) and Remove Duplicates (which
// may remember items) they are cheap and pure, so the coordinator may run them
// itself. A parameter that is absent has n8n's default for that version.
package items

import "github.com/reprise-engine/reprise/pkg/node"

const base = "n8n-nodes-base."

// Types lists all node types of the package.
func Types() []*node.Type {
	return node.Supporting([]*node.Type{
		SplitOut(), Aggregate(), Summarize(), Sort(), RemoveDuplicates(), RenameKeys(), CompareDatasets(), ItemLists(),
	}, support)
}
