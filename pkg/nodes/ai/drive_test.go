package ai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/internal/mockllm"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/fromai"
	"github.com/reprise-engine/reprise/pkg/nodes/httpstatus"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// modelServer keeps the bodies of the requests a model got.
type modelServer struct {
	*httptest.Server
	mu      sync.Mutex
	bodies  []string
	headers []http.Header
}

// serveModel starts a model; answer gets the body of each request.
func serveModel(t testing.TB, answer func(w http.ResponseWriter, path string, body []byte)) *modelServer {
	s := &modelServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.bodies = append(s.bodies, string(body))
		s.headers = append(s.headers, r.Header)
		s.mu.Unlock()
		answer(w, r.URL.Path, body)
	}))
	t.Cleanup(s.Close)
	return s
}

// scripted starts the scripted model.
func scripted(t testing.TB, script []byte) *modelServer {
	parsed, err := mockllm.ParseScript(script)
	require.NoError(t, err)
	mock := mockllm.New(mockllm.Config{Script: parsed})
	return serveModel(t, func(w http.ResponseWriter, path string, body []byte) {
		r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
		mock.ServeHTTP(w, r)
	})
}

// play drives an Agent slice by slice as the engine does, in one process.
type play struct {
	t        testing.TB
	workflow *workflow.Workflow
	registry *node.Registry
	url      string
	memory   map[string][]json.RawMessage
	runs     map[string]int
	subRuns  map[string][]engine.SubRun
	tools    map[string][]json.RawMessage // first item of each tool run
	rounds   []engine.Round               // of the outermost agent
	steps    []string
}

// errStopped is returned when a tool ended the execution.
var errStopped = errors.New("stopped by a tool")

func newPlay(t testing.TB, document []byte, url string) *play {
	w, err := workflow.Parse(document)
	require.NoError(t, err)
	registry := &node.Registry{}
	registry.Register(Types()...)
	registry.Register(&node.Type{
		Spec:    workflow.Spec{Type: "n8n-nodes-base.httpRequestTool", Versions: []float64{4.2}, ToolNode: true},
		Execute: fakeHTTP,
		Describe: func(_ context.Context, call *node.Call) (*node.ToolDescription, error) {
			schema, err := fromai.Schema(call.Node.Parameters)
			return &node.ToolDescription{Name: call.Node.Name, Description: call.Node.Name, Schema: schema}, err
		},
	})
	return &play{
		t: t, workflow: w, registry: registry, url: url,
		memory: map[string][]json.RawMessage{}, runs: map[string]int{},
		subRuns: map[string][]engine.SubRun{}, tools: map[string][]json.RawMessage{},
	}
}

func fakeHTTP(_ context.Context, call *node.Call) (*node.Result, error) {
	if strings.Contains(string(call.Node.Parameters), "/fail") {
		return nil, &engine.NodeError{Name: "NodeApiError", Message: httpstatus.Messages[500]}
	}
	said := strings.ToUpper(gjson.GetBytes(call.ToolArguments, "text").String())
	return &node.Result{Result: engine.Result{Outputs: []workflow.Items{nodestest.Items(`{"result":"SHOUT ` + said + `"}`)}}}, nil
}

func (p *play) call(name string, inputs workflow.Items, arguments json.RawMessage) *node.Call {
	n := p.workflow.Node(name)
	require.NotNil(p.t, n, name)
	typ, ok := p.registry.Find(n.Type, n.TypeVersion)
	require.True(p.t, ok, "%s %v", n.Type, n.TypeVersion)
	call := nodestest.Call(typ, string(n.Parameters), inputs)
	call.Node, call.ToolArguments = n, arguments
	call.Workflow.ID = "wf"
	call.IdempotencyKey = "key"
	call.HTTP = http.DefaultClient
	call.Parameters = agentResolver{}
	call.Credentials = func(context.Context, string, workflow.CredentialRef) (map[string]any, error) {
		return map[string]any{"apiKey": "sk-secret", "url": p.url + "/v1"}, nil
	}
	call.LoadMemory = func(_ context.Context, session string, n int) ([]json.RawMessage, error) {
		all := p.memory[session]
		return all[max(0, len(all)-n):], nil
	}
	call.RunScript = fakeScript
	call.SubNodes = map[string][]*node.Call{}
	for _, kind := range []string{workflow.LanguageModel, workflow.Memory, workflow.Tool, workflow.OutputParser} {
		for _, sub := range p.workflow.SubNodes(name, kind) {
			call.SubNodes[kind] = append(call.SubNodes[kind], p.call(sub.Name, inputs, nil))
		}
	}
	return call
}

// agentResolver evaluates $fromAI('key', …) besides the paths of the test kit.
type agentResolver struct{ nodestest.Resolver }

func (r agentResolver) Resolve(ctx context.Context, call *node.Call, item int, raw json.RawMessage) (json.RawMessage, error) {
	if _, after, ok := strings.Cut(string(raw), "$fromAI('"); ok {
		key, _, _ := strings.Cut(after, "'")
		return json.RawMessage(gjson.GetBytes(call.ToolArguments, key).Raw), nil
	}
	return r.Resolver.Resolve(ctx, call, item, raw)
}

// fakeScript plays the code of the golden workflows.
func fakeScript(_ context.Context, call *node.Call, script node.Script) (*node.ScriptResult, error) {
	query := gjson.ParseBytes(script.Globals["query"])
	switch {
	case strings.Contains(script.Code, "throw"):
		return nil, &engine.NodeError{Name: "NodeOperationError", Message: "boom: " + query.String() + " [line 1]"}
	case strings.Contains(script.Code, "$input.item.json"):
		item := call.Inputs[0][script.Item].JSON
		session := gjson.GetBytes(item, "sessionId").String()
		return scriptText("SHOUT " + strings.ToUpper(query.String()) + " from " + session + " " + session + " " + string(item)), nil
	case strings.Contains(script.Code, "toUpperCase"):
		return scriptText("SHOUT " + strings.ToUpper(query.String())), nil
	}
	return nil, fmt.Errorf("no such script here: %s", script.Code)
}

func scriptText(text string) *node.ScriptResult {
	return &node.ScriptResult{Type: "string", Value: json.RawMessage(jsonobject.Quote(text))}
}

// run executes a requester until it has a result; the slices share nothing but
// what went through JSON.
func (p *play) run(name string, inputs workflow.Items, arguments json.RawMessage) (*node.Result, error) {
	var rounds []engine.Round
	defer func() { p.rounds = rounds }()
	for {
		call := p.call(name, inputs, arguments)
		call.Rounds = throughJSON(p.t, rounds)
		result, err := call.Type.Execute(context.Background(), call)
		if err != nil {
			return nil, err
		}
		for _, run := range result.SubRuns {
			p.subRuns[run.Node] = append(p.subRuns[run.Node], run)
		}
		for _, m := range result.Memory {
			p.memory[m.Session] = append(p.memory[m.Session], m.Messages...)
		}
		if result.Request == nil {
			return result, nil
		}
		require.NotEmpty(p.t, result.Request.Actions)
		round := engine.Round{Metadata: result.Request.Metadata}
		for _, action := range result.Request.Actions {
			record, err := p.tool(action, inputs)
			if err != nil {
				return nil, err
			}
			round.Results = append(round.Results, engine.ActionResult{Action: action, RunIndex: p.runs[action.NodeName] - 1, Record: record})
		}
		rounds = append(rounds, round)
	}
}

func throughJSON[T any](t testing.TB, value T) (copied T) {
	raw, err := json.Marshal(value)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &copied))
	return copied
}

func (p *play) tool(action engine.Action, inputs workflow.Items) (*engine.Record, error) {
	p.runs[action.NodeName]++
	p.steps = append(p.steps, action.NodeName)
	require.Equal(p.t, "ExecutionNodeAction", action.ActionType)
	require.Equal(p.t, "ai_tool", action.Type)
	failed := func(failure *engine.NodeError) *engine.Record {
		item := json.RawMessage(`{"error":` + jsonobject.Quote(failure.Message) + `}`)
		p.tools[action.NodeName] = append(p.tools[action.NodeName], item)
		return &engine.Record{Status: engine.StatusError, Error: failure,
			Data: map[string][]workflow.Items{workflow.Tool: {{{JSON: item}}}}}
	}
	if action.Error != nil {
		return failed(action.Error), nil
	}
	merged := jsonobject.Parse(inputs[action.Metadata.ItemIndex].JSON)
	for _, m := range jsonobject.Parse(action.Input).Members() {
		merged.Set(m.Key, m.Value)
	}
	merged.Set("toolCallId", jsonobject.Quote(action.ID))
	outer := p.rounds
	result, err := p.run(action.NodeName, workflow.Items{{JSON: merged.JSON()}}, action.Input)
	p.rounds = outer
	var failure *engine.NodeError
	switch {
	case errors.As(err, &failure):
	case err != nil:
		return nil, err
	case result.Error != nil:
		failure = result.Error
	}
	if failure != nil {
		record := failed(failure)
		if p.workflow.Node(action.NodeName).OnError == workflow.OnErrorStop {
			return nil, errStopped
		}
		return record, nil
	}
	p.tools[action.NodeName] = append(p.tools[action.NodeName], result.Outputs[0][0].JSON)
	return &engine.Record{Status: engine.StatusSuccess, Data: map[string][]workflow.Items{workflow.Tool: result.Outputs}}, nil
}

// checkHistory fails unless every call in a chat request has exactly one
// answer, right behind its turn and in the order asked.
func checkHistory(t testing.TB, body string) {
	t.Helper()
	require.Empty(t, historyProblem(gjson.Get(body, "messages").Array()), body)
}
