package approval_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/approval"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

var now = time.Date(2026, 12, 1, 5, 34, 31, 737e6, time.UTC)

func typeNamed(tb testing.TB, name string) *node.Type {
	tb.Helper()
	for _, t := range approval.Types() {
		if t.Type == name {
			return t
		}
	}
	tb.Fatalf("no type %s", name)
	return nil
}

// tool is a call of a tool behind a gate; shown is its name for models, "" for one
// without Describe.
func tool(name, shown string) *node.Call {
	t := &node.Type{Spec: workflow.Spec{ToolNode: true}}
	if shown != "" {
		t.Describe = func(context.Context, *node.Call) (*node.ToolDescription, error) {
			return &node.ToolDescription{Name: shown}, nil
		}
	}
	return &node.Call{Node: &workflow.Node{Name: name}, Type: t}
}

// gateCall is a gate called with arguments, which its item has too.
func gateCall(tb testing.TB, parameters, arguments string, tools ...*node.Call) *node.Call {
	call := nodestest.Call(typeNamed(tb, approval.TypeGate), parameters, nodestest.Items(arguments))
	call.ToolArguments = json.RawMessage(arguments)
	call.Inputs[0][0].PairedItem = workflow.PairedItems{{Item: 2, SourceOverwrite: &workflow.Source{PreviousNode: "Question"}}}
	call.SubNodes = map[string][]*node.Call{workflow.Tool: tools}
	call.Now = func() time.Time { return now }
	return call
}

func execute(tb testing.TB, call *node.Call) *node.Result {
	tb.Helper()
	result, err := call.Type.Execute(tb.Context(), call)
	require.NoError(tb, err)
	return result
}

func TestGateAsksAboutTheCall(t *testing.T) {
	// The spacing and the order of the arguments are part of what is shown.
	arguments := `{"reason":"x","toolParameters": {"to":"Ada",  "amount":1.50},"tool":"Send_money"}`
	call := gateCall(t, `{"message":"=Call {{ $json.tool }} for {{ $json.toolParameters.to }}?","timeout":"1d12h","denyLabel":"No"}`,
		arguments, tool("Send money", "Send money"))
	require.Equal(t, &engine.Wait{
		Kind:  engine.WaitApproval,
		Until: now.Add(36 * time.Hour).UnixMilli(),
		Question: &engine.Question{
			Title: `Run "Send money"?`, Text: "Call Send_money for Ada?",
			Tool: "Send money", ToolName: "Send_money", Arguments: json.RawMessage(`{"to":"Ada",  "amount":1.50}`),
			Approve: "Approve", Deny: "No",
		},
	}, execute(t, call).Wait)
}

func TestGateWithoutTimeoutWaitsWithoutEnd(t *testing.T) {
	for _, parameters := range []string{`{}`, `{"timeout":""}`, `{"timeout":" "}`} {
		require.Zero(t, execute(t, gateCall(t, parameters, `{"toolParameters":{},"tool":"A"}`, tool("A", ""))).Wait.Until)
	}
}

func TestGateFindsTheTool(t *testing.T) {
	for _, tt := range []struct {
		name, called string
		tools        []*node.Call
		want, fails  string
	}{
		{name: "the only one, whatever its name", called: "renamed", tools: []*node.Call{tool("Mail", "Mail")}, want: "Mail"},
		{name: "by its node's name", called: "Send_it", tools: []*node.Call{tool("Read", ""), tool("Send  it!", "")}, fails: `None of the tools behind "Node" is called "Send_it"`},
		{name: "by its node's legal name", called: "Send_it", tools: []*node.Call{tool("Read", ""), tool("Send it", "")}, want: "Send it"},
		{name: "by the name it describes itself with", called: "lookup", tools: []*node.Call{tool("Read", "Read"), tool("Find", "lookup")}, want: "Find"},
		{name: "that name goes before another node's", called: "Find", tools: []*node.Call{tool("Find", "lookup"), tool("Search", "Find")}, want: "Search"},
		{name: "as a model writes a node's name", called: "Send it", tools: []*node.Call{tool("Read", ""), tool("Send it", "")}, want: "Send it"},
		{name: "second of its name at the Agent", called: "Send_it_2", tools: []*node.Call{tool("Read", ""), tool("Send it", "")}, want: "Send it"},
		{name: "second of a long name", called: strings.Repeat("a", 62) + "_2", tools: []*node.Call{tool("Read", ""), tool(strings.Repeat("a", 70), "")}, want: strings.Repeat("a", 70)},
		{name: "two of a name", called: "Send_it", tools: []*node.Call{tool("Send it", ""), tool("Send?it", "")}, fails: "Send it, Send?it"},
		{name: "none", called: "A", fails: `No tool is connected to "Node"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			call := gateCall(t, `{}`, `{"toolParameters":{},"tool":"`+tt.called+`"}`, tt.tools...)
			result, err := call.Type.Execute(t.Context(), call)
			if tt.fails != "" {
				var failure *engine.NodeError
				require.ErrorAs(t, err, &failure)
				require.Contains(t, failure.Message, tt.fails)
				require.True(t, failure.NotRetryable)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, result.Wait.Question.Tool)
			require.Equal(t, tt.called, result.Wait.Question.ToolName)
		})
	}
}

func TestGateCannotRunByItself(t *testing.T) {
	call := gateCall(t, `{}`, `{}`, tool("A", ""))
	call.ToolArguments = nil
	_, err := call.Type.Execute(t.Context(), call)
	require.ErrorContains(t, err, `"Node" asks before a tool is run and cannot be run by itself`)
}

func TestGateWithUnwrappedArgumentsShowsThemAll(t *testing.T) {
	asked := execute(t, gateCall(t, `{}`, `{"city":"Rome"}`, tool("My tool", ""))).Wait.Question
	require.JSONEq(t, `{"city":"Rome"}`, string(asked.Arguments))
	require.Equal(t, "My_tool", asked.ToolName)
}

func TestBadDuration(t *testing.T) {
	for _, text := range []string{"soon", "20", "5 years", "-2h", "0s", "2h soon", "999999999999d", "1e9s"} {
		call := gateCall(t, `{"timeout":"`+text+`"}`, `{"toolParameters":{},"tool":"A"}`, tool("A", ""))
		_, err := call.Type.Execute(t.Context(), call)
		var failure *engine.NodeError
		require.ErrorAs(t, err, &failure, text)
		require.Contains(t, failure.Message, `parameter timeout of Node is wrong`)
		require.Contains(t, failure.Message, text)
	}
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"20s": 20 * time.Second, "2h": 2 * time.Hour, "3d": 72 * time.Hour, "1w": 168 * time.Hour,
		"1d12h": 36 * time.Hour, "1.5h": 90 * time.Minute, " 1 d 30 m ": 24*time.Hour + 30*time.Minute,
	} {
		got, err := approval.ParseDuration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func decided(d engine.Decision) *engine.Resumption {
	d.At = now.UnixMilli()
	return &engine.Resumption{Kind: engine.WaitApproval, Decision: &d}
}

func TestAnswer(t *testing.T) {
	for _, tt := range []struct {
		name       string
		resumption *engine.Resumption
		freeText   bool
		want       string
	}{
		{name: "approved", resumption: decided(engine.Decision{Approved: true}),
			want: `{"data":{"approved":true,"respondedAt":"2026-12-01T05:34:31.737Z"}}`},
		{name: "denied", resumption: decided(engine.Decision{By: "Ada"}),
			want: `{"data":{"approved":false,"respondedAt":"2026-12-01T05:34:31.737Z"}}`},
		{name: "denied with feedback", resumption: decided(engine.Decision{Feedback: `"less" money`}),
			want: `{"data":{"approved":false,"respondedAt":"2026-12-01T05:34:31.737Z","chatInput":"\"less\" money"}}`},
		{name: "expired", resumption: &engine.Resumption{Kind: engine.WaitApproval, Expired: true},
			want: `{"data":{"approved":false,"expired":true}}`},
		{name: "text", freeText: true, resumption: decided(engine.Decision{Approved: true, Feedback: "Rome"}),
			want: `{"data":{"text":"Rome"}}`},
		{name: "text that never came", freeText: true, resumption: &engine.Resumption{Kind: engine.WaitApproval, Expired: true},
			want: `{"data":{"approved":false,"expired":true}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			call := gateCall(t, `{"timeout":"not read again"}`, `{"toolParameters":{},"tool":"A"}`, tool("A", ""))
			call.Resumption = tt.resumption
			result, err := approval.Answer(call, tt.freeText)
			require.NoError(t, err)
			require.Equal(t, []workflow.Items{{{JSON: json.RawMessage(tt.want), PairedItem: call.Inputs[0][0].PairedItem}}}, result.Outputs)
			if !tt.freeText {
				require.Equal(t, result, execute(t, call), "the gate answers the same")
			}
		})
	}
}

func TestSilenceIsNoApproval(t *testing.T) {
	for _, name := range []string{approval.TypeGate, approval.TypeApproval} {
		for _, resumption := range []*engine.Resumption{
			{Kind: engine.WaitApproval},
			{Kind: engine.WaitTime, Expired: true},
			{Kind: engine.WaitWebhook, Decision: &engine.Decision{Approved: true}},
		} {
			call := gateCall(t, `{}`, `{}`)
			call.Type = typeNamed(t, name)
			call.Resumption = resumption
			_, err := call.Type.Execute(t.Context(), call)
			require.ErrorContains(t, err, "without a decision")
		}
	}
}

func TestApprovalOfItems(t *testing.T) {
	call := nodestest.Call(typeNamed(t, approval.TypeApproval), `{"message":"=Pay {{ $json.n }}?","timeout":"20s"}`, nodestest.Items(`{"n":1}`, `{"n":2}`))
	call.Now = func() time.Time { return now }
	require.Equal(t, &engine.Wait{
		Kind: engine.WaitApproval, Until: now.Add(20 * time.Second).UnixMilli(),
		Question: &engine.Question{Title: "Node", Text: "Pay 1?", Approve: "Approve", Deny: "Deny"},
	}, execute(t, call).Wait)

	for _, tt := range []struct {
		name       string
		resumption *engine.Resumption
		output     int
		want       string
	}{
		{"approved", decided(engine.Decision{Approved: true, By: "Ada"}), 0, `{"approved":true,"by":"Ada","respondedAt":"2026-12-01T05:34:31.737Z"}`},
		{"denied", decided(engine.Decision{Feedback: "no"}), 1, `{"approved":false,"feedback":"no","respondedAt":"2026-12-01T05:34:31.737Z"}`},
		{"expired", &engine.Resumption{Kind: engine.WaitApproval, Expired: true}, 1, `{"approved":false,"expired":true}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			again := *call
			again.Resumption = tt.resumption
			want := []workflow.Items{{}, {}}
			want[tt.output] = workflow.Items{
				{JSON: json.RawMessage(`{"n":1,"approval":` + tt.want + `}`), PairedItem: workflow.Paired(0)},
				{JSON: json.RawMessage(`{"n":2,"approval":` + tt.want + `}`), PairedItem: workflow.Paired(1)},
			}
			require.Equal(t, want, execute(t, &again).Outputs)
		})
	}
	require.JSONEq(t, `{"n":1}`, string(call.Inputs[0][0].JSON), "the input is shared and stays as it is")
}

func TestApprovalOfNothingAsksNobody(t *testing.T) {
	call := nodestest.Call(typeNamed(t, approval.TypeApproval), `{}`, workflow.Items{})
	require.Equal(t, []workflow.Items{{}, {}}, execute(t, call).Outputs)
}
