package http

import (
	"context"
	"encoding/json"
	nethttp "net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

func (c Config) executeGraphQL(ctx context.Context, call *node.Call) (*node.Result, error) {
	x := &execution{Config: c, call: call, read: (*parameters).readGraphQL, output: (*response).graphQLItems}
	return x.execute(ctx)
}

// mutates reports whether a query may change something: only mutations do, and what is not known
// before the node runs may be one.
func mutates(n *workflow.Node) bool {
	query := gjson.GetBytes(n.Parameters, "query").String()
	return strings.HasPrefix(query, "=") || strings.Contains(query, "mutation")
}

// readGraphQL evaluates the parameters of the GraphQL node.
func (p *parameters) readGraphQL() *request {
	r := &request{
		method: strings.ToUpper(p.text("requestMethod", nethttp.MethodPost)),
		url:    p.address("endpoint"),
		options: options{
			timeout: defaultTimeout, follow: true, maxRedirects: defaultMaxRedirects,
			insecure: p.flag("allowUnauthorizedCerts", false),
			format:   p.text("responseFormat", "json"),
			property: p.text("dataPropertyName", "data"),
		},
	}
	r.headers = p.pairs("headerParametersUi.parameter")
	query := p.text("query", "")
	if r.method == nethttp.MethodGet {
		r.query.Set("query", jsonobject.Quote(query))
		return r
	}
	format := "json"
	if p.call.Node.TypeVersion < 1.1 {
		format = "graphql"
	}
	if p.text("requestFormat", format) == "graphql" {
		r.body = plainBody([]byte(query), "application/graphql")
		return r
	}
	variables := p.json("variables", "Variables")
	if p.err == nil && variables != "" && variables != "null" && !strings.HasPrefix(variables, "{") {
		p.err = operationError("Using variables failed: they must be a JSON object")
	}
	if variables == "" {
		variables = "{}"
	}
	operation := "null"
	if name := p.text("operationName", ""); name != "" {
		operation = jsonobject.Quote(name)
	}
	var o jsonobject.Object
	o.Set("query", jsonobject.Quote(query))
	o.Set("variables", string(compact(variables)))
	o.Set("operationName", operation)
	r.body = plainBody(o.JSON(), "application/json")
	return r
}

// graphQLItems makes an item of an answer. Errors in it are the node's, although the status is 200.
func (resp *response) graphQLItems(o options, _ workflow.Item, index int) (workflow.Items, error) {
	if resp.status < 200 || resp.status > 299 {
		return nil, statusFailure(resp.status, resp.body, o)
	}
	paired := workflow.Paired(index)
	if o.format == "string" {
		var wrapped jsonobject.Object
		wrapped.Set(o.property, jsonobject.Quote(resp.decoded()))
		return workflow.Items{{JSON: wrapped.JSON(), PairedItem: paired}}, nil
	}
	body := strings.TrimSpace(resp.decoded())
	if !gjson.Valid(body) || !strings.HasPrefix(body, "{") {
		return nil, operationError(`Response body is not valid JSON. Change "Response Format" to "String"`)
	}
	if errs := gjson.Get(body, "errors"); errs.Exists() && errs.Type != gjson.Null {
		var messages []string
		errs.ForEach(func(_, e gjson.Result) bool {
			if text := e.Get("message").String(); text != "" {
				messages = append(messages, text)
			}
			return true
		})
		message := strings.Join(messages, ", ")
		if message == "" {
			message = "Unexpected error"
		}
		return nil, &failure{
			node: &engine.NodeError{Name: "NodeApiError", Message: message, NotRetryable: true},
			item: jsonobject.Quote(message),
		}
	}
	return workflow.Items{{JSON: json.RawMessage(body), PairedItem: paired}}, nil
}
