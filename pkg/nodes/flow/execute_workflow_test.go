package flow

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

const byID = `"workflowId":{"__rl":true,"mode":"id","value":"child"}`

// started plays the first call, which must ask for children.
func started(t *testing.T, nodeType *node.Type, c *node.Call) *engine.Children {
	t.Helper()
	result, err := nodeType.Execute(t.Context(), c)
	require.NoError(t, err)
	require.NotNil(t, result.Wait)
	require.Equal(t, engine.WaitChildren, result.Wait.Kind)
	require.Zero(t, result.Wait.Until)
	return result.Wait.Children
}

// resumed plays the second call.
func resumed(t *testing.T, nodeType *node.Type, c *node.Call, children ...*engine.ChildResult) (*node.Result, error) {
	t.Helper()
	c.Resumption = &engine.Resumption{Kind: engine.WaitChildren, Children: children}
	return nodeType.Execute(t.Context(), c)
}

func succeeded(id engine.ExecutionID, objects ...string) *engine.ChildResult {
	return &engine.ChildResult{Execution: id, WorkflowID: "child", Status: engine.StatusSuccess, Outputs: []workflow.Items{nodestest.Items(objects...)}}
}

func TestWhichWorkflow(t *testing.T) {
	const document = `{"nodes":[],"connections":{}}`
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	quote := func(text string) string {
		raw, err := json.Marshal(text)
		require.NoError(t, err)
		return string(raw)
	}
	huge := `{"nodes":[],"x":"` + strings.Repeat("x", maxDocumentBytes) + `"}`
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		switch r.URL.Path {
		case "/ok":
			_, _ = w.Write([]byte(document))
		case "/huge":
			_, _ = w.Write([]byte(huge))
		case "/page":
			_, _ = w.Write([]byte("<html>"))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	for name, row := range map[string]struct {
		parameters          string
		id, document        string
		message, desription string
	}{
		"text of version 1":     {parameters: `"workflowId":" child "`, id: "child"},
		"locator":               {parameters: byID, id: "child"},
		"locator from the list": {parameters: `"source":"database","workflowId":{"__rl":true,"mode":"list","value":"child","cachedResultName":"={{ broken }}"}`, id: "child"},
		"expression":            {parameters: `"workflowId":{"__rl":true,"mode":"id","value":"={{ $json.id }}"}`, id: "from item"},
		"expression as a whole": {parameters: `"workflowId":"={{ $json.locator }}"`, id: "inner"},
		"number":                {parameters: `"workflowId":12`, id: "12"},
		"document":              {parameters: `"source":"parameter","workflowJson":` + quote(document), document: document},
		"file":                  {parameters: `"source":"localFile","workflowPath":` + quote(write("ok.json", document)), document: document},
		"url":                   {parameters: `"source":"url","workflowUrl":"` + server.URL + `/ok"`, document: document},
		"none":                  {parameters: `"options":{}`, message: "No workflow is chosen"},
		"undefined":             {parameters: `"workflowId":"={{ $json.nothing }}"`, message: "No workflow is chosen"},
		"empty locator":         {parameters: `"workflowId":{"__rl":true,"mode":"list","value":""}`, message: "No workflow is chosen"},
		"source":                {parameters: `"source":"git"`, message: `The workflow source "git" is unknown`},
		"document that is text": {parameters: `"source":"parameter","workflowJson":"{oops"`, message: "The provided workflow is not valid JSON"},
		"document without node": {parameters: `"source":"parameter","workflowJson":"{}"`, message: "The provided workflow has no nodes"},
		"no path":               {parameters: `"source":"localFile"`, message: "No workflow is chosen"},
		"no file":               {parameters: `"source":"localFile","workflowPath":"/no/such.json"`, message: `The workflow "/no/such.json" could not be loaded`, desription: "no such file"},
		"folder":                {parameters: `"source":"localFile","workflowPath":` + quote(dir), message: "could not be loaded", desription: "not a regular file"},
		"huge file":             {parameters: `"source":"localFile","workflowPath":` + quote(write("huge.json", huge)), message: "is larger than 4 MiB"},
		"not found":             {parameters: `"source":"url","workflowUrl":"` + server.URL + `/no"`, message: "could not be loaded", desription: "404 Not Found"},
		"huge answer":           {parameters: `"source":"url","workflowUrl":"` + server.URL + `/huge"`, message: "is larger than 4 MiB"},
		"page":                  {parameters: `"source":"url","workflowUrl":"` + server.URL + `/page"`, message: "is not valid JSON"},
		"no url":                {parameters: `"source":"url","workflowUrl":"::"`, message: "could not be loaded", desription: "missing protocol scheme"},
	} {
		t.Run(name, func(t *testing.T) {
			c := call(ExecuteWorkflow(), 1.2, `{`+row.parameters+`}`, `{"id":"from item","locator":{"__rl":true,"value":"inner"}}`)
			c.HTTP = server.Client()
			if row.message != "" {
				result, err := ExecuteWorkflow().Execute(t.Context(), c)
				failure := failureOf(t, result, err)
				require.Contains(t, failure.Message, row.message)
				require.Contains(t, failure.Description, row.desription)
				return
			}
			run := started(t, ExecuteWorkflow(), c).Runs[0]
			require.Equal(t, row.id, run.WorkflowID)
			require.Equal(t, row.document, string(run.Workflow))
		})
	}
	requests = 0
	c := call(ExecuteWorkflow(), 1.2, `{"mode":"each","source":"url","workflowUrl":"`+server.URL+`/ok"}`, `{}`, `{}`)
	c.HTTP = server.Client()
	require.Len(t, started(t, ExecuteWorkflow(), c).Runs, 2)
	require.Equal(t, 1, requests, "one address is fetched once")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := ExecuteWorkflow().Execute(ctx, c)
	require.ErrorIs(t, err, context.Canceled)
}

// TestWorkflowInputs gives for a mapping what the child gets, and what is given out
// when it is not awaited.
func TestWorkflowInputs(t *testing.T) {
	schema := func(fields string) string { return `"mappingMode":"defineBelow","schema":[` + fields + `],` }
	number, text := `{"id":"n","displayName":"n","type":"number"}`, `{"id":"t","displayName":"t","type":"string"}`
	for name, row := range map[string]struct {
		inputs, item     string
		sent, handedOver string
		message          string
	}{
		"nothing":                     {inputs: `{"mappingMode":"defineBelow","value":{}}`, item: `{"b":1,"a":2}`, sent: `{"b":1,"a":2}`},
		"null":                        {inputs: `{"mappingMode":"defineBelow","value":null}`, item: `{"a":2}`, sent: `{"a":2}`},
		"automatic":                   {inputs: `{"mappingMode":"autoMapInputData","value":{"x":1}}`, item: `{"a":2}`, sent: `{"a":2}`},
		"only what is asked for":      {inputs: `{` + schema(number) + `"value":{"n":"={{ $json.a }}"}}`, item: `{"a":2,"z":3}`, sent: `{"n":2}`, handedOver: `{"a":2,"z":3,"n":2}`},
		"undefined is null":           {inputs: `{` + schema(number) + `"value":{"n":"={{ $json.x }}"}}`, item: `{"a":2}`, sent: `{"n":null}`, handedOver: `{"a":2,"n":null}`},
		"not mapped, in the item":     {inputs: `{` + schema(number+","+text) + `"value":{"n":1}}`, item: `{"t":"own"}`, sent: `{"n":1,"t":"own"}`, handedOver: `{"t":"own","n":1}`},
		"not mapped, nowhere":         {inputs: `{` + schema(number+","+text) + `"value":{"n":1}}`, item: `{}`, sent: `{"n":1,"t":null}`, handedOver: `{"n":1}`},
		"removed":                     {inputs: `{` + schema(number+`,{"id":"t","type":"string","removed":true}`) + `"value":{"n":1}}`, item: `{"t":"own"}`, sent: `{"n":1,"t":null}`, handedOver: `{"n":1}`},
		"removed without a mapping":   {inputs: `{` + schema(`{"id":"t","removed":true}`) + `"value":{}}`, item: `{"t":"own","u":1}`, sent: `{"u":1}`, handedOver: `{"u":1}`},
		"mapped without a schema":     {inputs: `{"mappingMode":"defineBelow","value":{"x":"={{ $json.a }}"}}`, item: `{"a":2}`, sent: `{"a":2,"x":2}`, handedOver: `{"a":2,"x":2}`},
		"mapped, not in the schema":   {inputs: `{` + schema(number) + `"value":{"n":1,"x":true}}`, item: `{"a":2}`, sent: `{"n":1,"x":true}`, handedOver: `{"a":2,"n":1,"x":true}`},
		"number for a text":           {inputs: `{` + schema(text) + `"convertFieldsToString":true,"value":{"t":"={{ $json.a }}"}}`, item: `{"a":2}`, sent: `{"t":"2"}`, handedOver: `{"a":2,"t":"2"}`},
		"tree for a text":             {inputs: `{` + schema(text) + `"convertFieldsToString":true,"value":{"t":"={{ $json.a }}"}}`, item: `{"a": {"b" : [1]}}`, sent: `{"t":"{\"b\":[1]}"}`, handedOver: `{"a":{"b" : [1]},"t":"{\"b\":[1]}"}`},
		"number stays without option": {inputs: `{` + schema(text) + `"value":{"t":5}}`, item: `{}`, sent: `{"t":5}`, handedOver: `{"t":5}`},
		"text for a number":           {inputs: `{` + schema(number) + `"value":{"n":"5"}}`, item: `{}`, message: `'n' expects a number but we got '5' [item 0]`},
		"array for a number":          {inputs: `{` + schema(number) + `"attemptToConvertTypes":true,"value":{"n":[5]}}`, item: `{}`, message: `'n' expects a number but we got array [item 0]`},
		"text for an object":          {inputs: `{` + schema(`{"id":"o","type":"object"}`) + `"value":{"o":"{}"}}`, item: `{}`, message: `'o' expects a object but we got '{}' [item 0]`},
		"converted": {inputs: `{` + schema(number+`,{"id":"b","type":"boolean"},{"id":"o","type":"object"},{"id":"l","type":"array"},{"id":"any","type":"any"}`) +
			`"attemptToConvertTypes":true,"value":{"n":" 12345678901234567890 ","b":"TRUE","o":"{\"x\":1}","l":"[1]","any":"5"}}`, item: `{}`,
			sent:       `{"n":12345678901234567890,"b":true,"o":{"x":1},"l":[1],"any":"5"}`,
			handedOver: `{"n":12345678901234567890,"b":true,"o":{"x":1},"l":[1],"any":"5"}`},
		"cannot be converted": {inputs: `{` + schema(number) + `"attemptToConvertTypes":true,"value":{"n":"many"}}`, item: `{}`, message: `'n' expects a number but we got 'many' [item 0]`},
	} {
		t.Run(name, func(t *testing.T) {
			parameters := `{` + byID + `,"options":{"waitForSubWorkflow":false},"workflowInputs":` + row.inputs + `}`
			c := call(ExecuteWorkflow(), 1.2, parameters, row.item)
			c.Inputs[0][0].Binary = map[string]workflow.Binary{"data": {Data: "eA=="}}
			c.Inputs[0][0].Metadata = json.RawMessage(`{"subExecution":{}}`)
			if row.message != "" {
				result, err := ExecuteWorkflow().Execute(t.Context(), c)
				require.Equal(t, row.message, failureOf(t, result, err).Message)
				return
			}
			children := started(t, ExecuteWorkflow(), c)
			require.True(t, children.Detached)
			sent := children.Runs[0].Input[0]
			require.Equal(t, row.sent, string(sent.JSON), "in this order")
			require.Equal(t, "eA==", sent.Binary["data"].Data)
			require.Nil(t, sent.Metadata)

			result, err := resumed(t, ExecuteWorkflow(), c, &engine.ChildResult{Execution: "c", WorkflowID: "child", Status: engine.StatusRunning})
			require.NoError(t, err)
			if row.handedOver == "" {
				row.handedOver = row.sent
			}
			require.Equal(t, row.handedOver, string(result.Outputs[0][0].JSON))
			require.Equal(t, "eA==", result.Outputs[0][0].Binary["data"].Data)
		})
	}
}

func TestOnce(t *testing.T) {
	c := call(ExecuteWorkflow(), 1.3, `{`+byID+`}`, `{"n":1}`, `{"n":2}`)
	children := started(t, ExecuteWorkflow(), c)
	require.Equal(t, &engine.Children{Runs: []engine.ChildRun{{WorkflowID: "child", Input: workflow.Items{
		{JSON: json.RawMessage(`{"n":1}`), PairedItem: workflow.Paired(0)}, {JSON: json.RawMessage(`{"n":2}`), PairedItem: workflow.Paired(1)},
	}}}}, children)

	result, err := resumed(t, ExecuteWorkflow(), c, succeeded("c", `{"sum":3}`))
	require.NoError(t, err)
	requireItems(t, `[{"json":{"sum":3},"pairedItem":[{"item":0},{"item":1}]}]`, result.Outputs[0])
	require.Empty(t, result.Hints)

	result, err = resumed(t, ExecuteWorkflow(), c, succeeded("c"))
	require.NoError(t, err)
	require.Equal(t, []workflow.Items{{}}, result.Outputs)

	result, err = resumed(t, ExecuteWorkflow(), c, &engine.ChildResult{Execution: "c", Status: engine.StatusSuccess})
	require.NoError(t, err)
	require.Equal(t, []workflow.Items{{}}, result.Outputs)

	branched := succeeded("c")
	branched.Outputs = append(branched.Outputs, nodestest.Items(`{}`, `{}`))
	result, err = resumed(t, ExecuteWorkflow(), c, branched)
	require.NoError(t, err)
	require.Contains(t, result.Hints[0].Message, "Output 2 of the sub-workflow's last node has 2 items")

	inner := succeeded("c", `{"a":1}`, `{"a":2}`)
	inner.Outputs[0][0].PairedItem, inner.Outputs[0][0].Metadata = workflow.Paired(7), json.RawMessage(`{"subExecution":{"executionId":"grandchild"}}`)
	result, err = resumed(t, ExecuteWorkflow(), c, inner)
	require.NoError(t, err)
	requireItems(t, `[{"json":{"a":1},"pairedItem":{"item":0}},{"json":{"a":2},"pairedItem":{"item":1}}]`, result.Outputs[0])
}

func TestEach(t *testing.T) {
	c := call(ExecuteWorkflow(), 1.3, `{"mode":"each","workflowId":"={{ $json.w }}"}`, `{"w":"a"}`, `{"w":"b"}`)
	children := started(t, ExecuteWorkflow(), c)
	require.True(t, children.Sequential)
	require.True(t, children.StopOnError)
	require.Equal(t, []engine.ChildRun{
		{WorkflowID: "a", Input: workflow.Items{{JSON: json.RawMessage(`{"w":"a"}`), PairedItem: workflow.Paired(0)}}},
		{WorkflowID: "b", Input: workflow.Items{{JSON: json.RawMessage(`{"w":"b"}`), PairedItem: workflow.Paired(0)}}},
	}, children.Runs)

	result, err := resumed(t, ExecuteWorkflow(), c, succeeded("c1"), succeeded("c2", `{"a":1}`, `{"a":2}`))
	require.NoError(t, err)
	requireItems(t, `[
		{"json":{"a":1},"pairedItem":{"item":1},"metadata":{"subExecution":{"executionId":"c2","workflowId":"child"}}},
		{"json":{"a":2},"pairedItem":{"item":1},"metadata":{"subExecution":{"executionId":"c2","workflowId":"child"}}}]`, result.Outputs[0])

	failed := &engine.ChildResult{Execution: "c1", Status: engine.StatusError, Error: &engine.NodeError{Message: "boom", HTTPCode: "404"}}
	result, err = resumed(t, ExecuteWorkflow(), c, failed, nil)
	failure := failureOf(t, result, err)
	require.Equal(t, "Error executing workflow with item at index 0", failure.Message)
	require.Equal(t, "boom", failure.Description)
	require.Equal(t, "404", failure.HTTPCode)
	require.Equal(t, 0, *failure.ItemIndex)
}

func TestEachDetached(t *testing.T) {
	c := call(ExecuteWorkflow(), 1.3, `{"mode":"each",`+byID+`,"options":{"waitForSubWorkflow":false}}`, `{"n":1}`, `{"n":2}`)
	children := started(t, ExecuteWorkflow(), c)
	require.True(t, children.Detached)
	require.False(t, children.Sequential)
	require.False(t, children.StopOnError)
	result, err := resumed(t, ExecuteWorkflow(), c,
		&engine.ChildResult{Execution: "c1", WorkflowID: "child", Status: engine.StatusRunning},
		&engine.ChildResult{Execution: "c2", WorkflowID: "child", Status: engine.StatusRunning})
	require.NoError(t, err)
	requireItems(t, `[
		{"json":{"n":1},"pairedItem":{"item":0},"metadata":{"subExecution":{"executionId":"c1","workflowId":"child"}}},
		{"json":{"n":2},"pairedItem":{"item":1},"metadata":{"subExecution":{"executionId":"c2","workflowId":"child"}}}]`, result.Outputs[0])

	c = call(ExecuteWorkflow(), 1.3, `{"mode":"each",`+byID+`,"options":{"waitForSubWorkflow":"={{ $json.wait }}"}}`, `{"wait":true}`, `{"wait":false}`)
	result, err = ExecuteWorkflow().Execute(t.Context(), c)
	require.Equal(t, 1, *failureOf(t, result, err).ItemIndex)
}

// TestEachGoesOn has an item without a child between two with one, of which the
// second fails.
func TestEachGoesOn(t *testing.T) {
	c := call(ExecuteWorkflow(), 1, `{"mode":"each","workflowId":"={{ $json.w }}"}`, `{"w":"a"}`, `{}`, `{"w":"b"}`)
	c.Node.ContinueOnFail = true
	children := started(t, ExecuteWorkflow(), c)
	require.True(t, children.Sequential)
	require.False(t, children.StopOnError)
	require.Len(t, children.Runs, 2)
	document := &engine.ChildResult{Execution: "c2", Status: engine.StatusError, Error: &engine.NodeError{Message: "boom"}}
	result, err := resumed(t, ExecuteWorkflow(), c, succeeded("c1", `{"a":1}`), document)
	require.NoError(t, err)
	requireItems(t, `[
		{"json":{"a":1},"pairedItem":{"item":0},"metadata":{"subExecution":{"executionId":"c1","workflowId":"child"}}},
		{"json":{"error":"No workflow is chosen"},"pairedItem":{"item":1}},
		{"json":{"error":"boom"},"pairedItem":{"item":2},"metadata":{"subExecution":{"executionId":"c2","workflowId":"w"},"subExecutionsCount":1}}]`, result.Outputs[0])

	result, err = resumed(t, ExecuteWorkflow(), c, document)
	require.Contains(t, failureOf(t, result, err).Message, "other values than before")

	c = call(ExecuteWorkflow(), 1.3, `{"mode":"each"}`, `{}`, `{}`)
	c.Node.OnError = workflow.OnErrorOutput
	result, err = ExecuteWorkflow().Execute(t.Context(), c)
	require.NoError(t, err)
	require.Nil(t, result.Wait)
	requireItems(t, `[{"json":{"error":"No workflow is chosen"},"pairedItem":{"item":0}},{"json":{"error":"No workflow is chosen"},"pairedItem":{"item":1}}]`, result.Outputs[0])

	c = call(ExecuteWorkflow(), 1.3, `{}`, `{}`, `{}`)
	c.Node.OnError = workflow.OnErrorContinue
	result, err = ExecuteWorkflow().Execute(t.Context(), c)
	require.NoError(t, err)
	requireItems(t, `[{"json":{"error":"No workflow is chosen"},"pairedItem":[{"item":0},{"item":1}]}]`, result.Outputs[0])
}

func TestChildFailure(t *testing.T) {
	boom := &engine.NodeError{Message: "boom", Description: "why", Name: "NodeApiError", HTTPCode: "500", Node: "Inner", NotRetryable: true}
	for name, row := range map[string]struct {
		child *engine.ChildResult
		want  *engine.NodeError
	}{
		"success":   {child: succeeded("c")},
		"stored":    {child: &engine.ChildResult{Execution: "c", Status: engine.StatusRunning}},
		"failed":    {child: &engine.ChildResult{Execution: "c", Status: engine.StatusError, Error: boom}, want: &engine.NodeError{Message: "boom", Description: "why", Name: "NodeApiError", HTTPCode: "500"}},
		"no reason": {child: &engine.ChildResult{Execution: "c", Status: engine.StatusError}, want: &engine.NodeError{Message: "The sub-workflow failed (execution c)", Name: "NodeOperationError"}},
		"canceled": {child: &engine.ChildResult{Execution: "c", Status: engine.StatusCanceled, Error: &engine.NodeError{Message: "by Ann", Reason: engine.ReasonCanceled}},
			want: &engine.NodeError{Message: "The sub-workflow was canceled (execution c)", Description: "by Ann", Name: "NodeOperationError", Reason: engine.ReasonCanceled}},
		"canceled without a word": {child: &engine.ChildResult{Execution: "c", Status: engine.StatusCanceled},
			want: &engine.NodeError{Message: "The sub-workflow was canceled (execution c)", Name: "NodeOperationError", Reason: engine.ReasonCanceled}},
		"timed out": {child: &engine.ChildResult{Execution: "c", Status: engine.StatusCanceled, Error: &engine.NodeError{Message: "too long", Reason: engine.ReasonTimeout, Name: "TimeoutExecutionCancelledError"}},
			want: &engine.NodeError{Message: "The sub-workflow timed out (execution c)", Description: "too long", Name: "NodeOperationError", Reason: engine.ReasonTimeout}},
		"stored with an error": {child: &engine.ChildResult{Status: engine.StatusRunning, Error: boom}, want: &engine.NodeError{Message: "boom", Description: "why", Name: "NodeApiError", HTTPCode: "500"}},
		"not ended": {want: &engine.NodeError{Message: "The sub-workflow did not finish in the time the node has", Name: "NodeOperationError", Reason: engine.ReasonTimeout,
			Description: "Raise the node's timeout, or do not wait for the sub-workflow."}},
	} {
		t.Run(name, func(t *testing.T) {
			c := call(ExecuteWorkflow(), 1.2, `{`+byID+`}`, `{}`)
			result, err := resumed(t, ExecuteWorkflow(), c, row.child)
			if row.want == nil {
				require.NoError(t, err)
				return
			}
			require.Equal(t, row.want, failureOf(t, result, err))
		})
	}
}

func TestModes(t *testing.T) {
	result, err := ExecuteWorkflow().Execute(t.Context(), call(ExecuteWorkflow(), 1.2, `{"mode":"twice",`+byID+`}`, `{}`))
	require.Equal(t, `The mode "twice" is unknown`, failureOf(t, result, err).Message)
	result, err = ExecuteWorkflow().Execute(t.Context(), call(ExecuteWorkflow(), 1.2, `{`+byID+`}`))
	require.NoError(t, err)
	require.Equal(t, []workflow.Items{{}}, result.Outputs)

	// The end of an attempt is not an item's error.
	c := call(ExecuteWorkflow(), 1.2, `{`+byID+`}`, `{}`)
	c.Node.ContinueOnFail = true
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, ok := survivable(ctx, c, node.OperationError(0, "x", ""))
	require.False(t, ok)
	_, ok = survivable(t.Context(), c, errors.New("not a node's failure"))
	require.False(t, ok)
}
