// Package http holds the HTTP Request node (n8n-nodes-base.httpRequest) and the
// same node as an agent's tool (httpRequestTool; its elder, langchain.toolHttpRequest, has placeholders
// where a model's arguments go), and the nodes that are requests of one
// kind: GraphQL (graphql) and RSS Read (rssFeedRead), each also as a tool.
//
// Parameters are evaluated for each item; the requests of a batch then run at
// once. A JSON list becomes an item per element, an object one item, any other
// text {"data": text}, and a file goes beside the input item's json. Every item
// says which input item it came from.
//
// What a failed request tells (the texts a person sees, the error object an item
// carries under onError: continue…) is n8n's, so that workflows which look at
// it go on working.
//
// Requests that may change something carry an Idempotency-Key header that is
// the same for every attempt of the run, unless the user sends one of his own.
// With several items or pages, each request has a key of its own. When a worker is
// lost in the middle of a POST or PATCH the outcome is unknown and the request is not
// sent again, unless the workflow itself names the key or says onWorkerLost: repeat.
//
// Secrets come from Call.Credentials, are never sent to another host, or without encryption, by
// a redirect, and are blanked out in errors. Which addresses may be reached is the rule
// of Call.HTTP's transport, which options of the node (a proxy, untrusted certificates) do not change.
package http

import (
	nethttp "net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/fromai"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// The names of the types.
const (
	TypeRequest = "n8n-nodes-base.httpRequest"
	TypeTool    = TypeRequest + "Tool"
	TypeOldTool = "@n8n/n8n-nodes-langchain.toolHttpRequest"
	TypeGraphQL = "n8n-nodes-base.graphql"
	TypeFeed    = "n8n-nodes-base.rssFeedRead"
	TypePoll    = "n8n-nodes-base.rssFeedReadTrigger"
)

// DefaultMaxResponseBytes bounds the bodies of a run's responses.
const DefaultMaxResponseBytes = 64 << 20

// Config of the node types.
type Config struct {
	// MaxResponseBytes fails a request during which all responses of the node's run became
	// larger than this (after decompression); 0 is DefaultMaxResponseBytes.
	MaxResponseBytes int64
}

// Types returns the node types with the default Config.
func Types() []*node.Type { return Config{}.Types() }

// Types returns the node types.
func (c Config) Types() []*node.Type {
	if c.MaxResponseBytes <= 0 {
		c.MaxResponseBytes = DefaultMaxResponseBytes
	}
	return fromai.WithTools(node.Supporting([]*node.Type{
		{
			Spec:    workflow.Spec{Type: TypeRequest, Versions: []float64{1, 2, 3, 4, 4.1, 4.2, 4.3, 4.4}},
			Once:    changesOnce,
			Execute: c.execute,
		},
		{
			Spec:     workflow.Spec{Type: TypeOldTool, Versions: []float64{1, 1.1}, ToolNode: true},
			Once:     changesOnce,
			Execute:  c.executeOldTool,
			Describe: describeOldTool,
		},
		{
			Spec:    workflow.Spec{Type: TypeGraphQL, Versions: []float64{1, 1.1}},
			Once:    mutates,
			Execute: c.executeGraphQL,
		},
		{
			Spec:    workflow.Spec{Type: TypeFeed, Versions: []float64{1, 1.1, 1.2}},
			Execute: c.executeFeed,
		},
		{
			Spec:    workflow.Spec{Type: TypePoll, Versions: []float64{1}, Trigger: true, Polls: true},
			Execute: c.pollFeed,
		},
	}, support), map[string]fromai.Variant{
		TypeRequest: {Description: toolDescription, Versions: []float64{4, 4.1, 4.2, 4.3, 4.4}},
		TypeGraphQL: {Description: "Makes a GraphQL query and returns its answer"},
		TypeFeed:    {Description: "Reads the entries of an RSS or Atom feed"},
	})
}

// changesOnce reports whether a request must not be sent again when its worker
// vanished: HTTP itself says that of POST and PATCH, and of a method that is only known
// when the node runs. When the workflow gives the request an idempotency key, its
// author knows that the server looks at it; the key that is added by itself does not say
// so.
func changesOnce(n *workflow.Node) bool {
	method := strings.ToUpper(gjson.GetBytes(n.Parameters, methodParameter(n)).String())
	switch method {
	case "", nethttp.MethodGet, nethttp.MethodHead, nethttp.MethodOptions, nethttp.MethodPut, nethttp.MethodDelete:
		return false
	}
	parameters := strings.ToLower(string(n.Parameters))
	return !strings.Contains(parameters, "idempotency-key") && !strings.Contains(parameters, "idempotencykey")
}

// methodParameter is where a node's version keeps the method.
func methodParameter(n *workflow.Node) string {
	if n.TypeVersion < 3 && n.Type != TypeOldTool {
		return "requestMethod"
	}
	return "method"
}

func reads(method string) bool {
	return method == nethttp.MethodGet || method == nethttp.MethodHead || method == nethttp.MethodOptions
}
