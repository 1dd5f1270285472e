// Package web has the nodes that answer whoever began an execution over HTTP: Respond to
// Webhook, and the further pages and the end of a form. Where the answer goes is not
// known here: it is part of the run's result, and kept with it.
package web

import (
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

const base = "n8n-nodes-base."

// Types returns the node types of this package.
func Types() []*node.Type { return node.Supporting([]*node.Type{Respond(), Form()}, supported) }

// supported declares which settings are honoured.
var supported = map[string]node.Support{
	base + "respondToWebhook": {
		Options: []string{"responseCode", "responseHeaders", "responseKey"},
		Ignored: map[string]string{"enableStreaming": "the answer is given when it is complete"},
	},
	base + "form": {
		Options: []string{"buttonLabel", "formDescription", "formTitle"},
		Ignored: map[string]string{"customCss": "pages keep their own look"},
	},
}

// passed are the items of the input, each made of its own.
func passed(items workflow.Items) workflow.Items {
	out := make(workflow.Items, len(items))
	for i, item := range items {
		item.PairedItem = workflow.Paired(i)
		out[i] = item
	}
	return out
}
