// Package text holds the node types that turn texts of one kind into another: HTML,
// HTML Extract, Markdown and XML. Names, versions, parameters and what comes out are n8n's.
//
// What comes out of a parser that is not n8n's own differs in white space and in rare
// constructs: Markdown is read as CommonMark, where n8n has Showdown.
package text

import "github.com/reprise-engine/reprise/pkg/node"

const base = "n8n-nodes-base."

// Types lists all node types of the package.
func Types() []*node.Type {
	return node.Supporting([]*node.Type{HTML(), HTMLExtract(), Markdown(), XML()}, support)
}
