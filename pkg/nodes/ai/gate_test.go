package ai

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/nodes/fromai"
)

func TestUnwrap(t *testing.T) {
	text := &gate{own: fromai.TextSchema, asks: json.RawMessage(`{"type":"object","properties":{"why":{"type":"string"}},"required":["why"],"additionalProperties":false}`)}
	odd := &gate{own: json.RawMessage(`{"type":"object","properties":{"toolParameters":{"type":"object"},"hitlParameters":{"type":"string"}}}`), asks: json.RawMessage(`{"type":"object"}`)}
	for _, tt := range []struct {
		name            string
		gate            *gate
		arguments       string
		own, asked      string
		wrapped         bool
		problemContains string // "" is none
	}{
		{"wrapped", text, `{"toolParameters":{"input":"1"},"hitlParameters":{"why":"x"}}`, `{"input":"1"}`, `{"why":"x"}`, true, ""},
		{"wrapped as a text", text, `{"toolParameters":"{\"input\":\"1\"}","hitlParameters":{"why":"x"}}`, `{"input":"1"}`, `{"why":"x"}`, true, ""},
		{"plain", text, `{"input":"1","hitlParameters":{"why":"x"}}`, `{"input":"1"}`, `{"why":"x"}`, false, ""},
		{"the gate's part is missing", text, `{"toolParameters":{"input":"1"}}`, `{"input":"1"}`, `{}`, true, `in hitlParameters: "why" is missing`},
		{"the tool's part is missing", text, `{"hitlParameters":{"why":"x"}}`, `{}`, `{"why":"x"}`, false, `"input" is missing`},
		{"bad arguments of the tool", text, `{"toolParameters":{"input":1},"hitlParameters":{"why":"x"}}`, `{"input":1}`, `{"why":"x"}`, true, `in toolParameters: "input" must be string`},
		{"not an object", text, `{"toolParameters":"6*7","hitlParameters":{"why":"x"}}`, `"6*7"`, `{"why":"x"}`, true, `in toolParameters: the value must be object`},
		{"an argument twice", text, `{"toolParameters":{"input":"1","input":"2"},"hitlParameters":{"why":"x"}}`, `{"input":"1","input":"2"}`, `{"why":"x"}`, true, `given twice`},
		{"a tool with arguments of these names", odd, `{"toolParameters":{"a":1},"hitlParameters":"h"}`, `{"toolParameters":{"a":1},"hitlParameters":"h"}`, `"h"`, false, "in hitlParameters"},
		{"nothing", &gate{own: json.RawMessage(`{"type":"object"}`), asks: json.RawMessage(`{"type":"object"}`)}, `{}`, `{}`, `{}`, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			own, asked, wrapped := tt.gate.unwrap(tt.arguments)
			require.Equal(t, []any{tt.own, tt.asked, tt.wrapped}, []any{own, asked, wrapped})
			problem := tt.gate.problem(own, asked, wrapped)
			if tt.problemContains == "" {
				require.Empty(t, problem)
			} else {
				require.Contains(t, problem, tt.problemContains)
			}
		})
	}
}

// References from the root of a tool's schema still lead to their place.
func TestWrapKeepsReferences(t *testing.T) {
	g := &gate{own: json.RawMessage(`{"type":"object","$defs":{"n":{"type":"number"}},"properties":{"a":{"$ref":"#/$defs/n"},"b":{"$ref" : "#"}}}`), asks: json.RawMessage(`{"type":"object","properties":{}}`)}
	schema := g.wrap()
	for value, want := range map[string]string{
		`{"toolParameters":{"a":1,"b":{"a":2}}}`:   "",
		`{"toolParameters":{"a":"1"}}`:             `"toolParameters.a" must be number, not string`,
		`{"toolParameters":{"a":1,"b":{"a":"2"}}}`: `"toolParameters.b.a" must be number, not string`,
	} {
		problem, err := violations(schema, json.RawMessage(value))
		require.NoError(t, err)
		require.Equal(t, want, problem, value)
	}
}

// The gate takes parameters from the model: they are offered, asked for and given to
// the gate beside the tool's arguments, and never to the tool.
func TestParametersOfTheGate(t *testing.T) {
	s := newScene(t, `
		Gate: gate {"message":"={{ $fromAI('reason', 'why it is needed') }}"}
		Calculator ~> Gate ~> Agent`)
	s.models.play("Agent", "", `Calculator {"toolParameters":{"input":"6*7"}}`+"\n"+
		`Calculator {"hitlParameters":{"reason":"I cannot count","tool":"Think"},"toolParameters":{"input":"6*7"}}`+"\n"+
		`Calculator {"input":"6*7","hitlParameters":{"reason":"I cannot count"}}`+"\n"+`"{{results}}"`)
	s.start(`{"q":"go"}`)
	require.Equal(t, `["toolParameters","hitlParameters"]`, gjson.Get(s.request("Agent", 0), "tools.0.function.parameters.required").Raw)
	require.Equal(t, `why it is needed`, gjson.Get(s.request("Agent", 0), "tools.0.function.parameters.properties.hitlParameters.properties.reason.description").Str)
	require.Equal(t, []string{
		`[{"error":"Bad arguments for Calculator: in hitlParameters: \"reason\" is missing"}]`,
		`[{"error":"Bad arguments for Calculator: in hitlParameters: \"tool\" is not an argument of it"}]`,
	}, answersIn(s.request("Agent", 2)))
	require.Equal(t, `Calculator#0 error from Agent#0 asked [{"input":"6*7"}] for item 0 of In ai_tool [{"error":"Bad arguments for Calculator: in hitlParameters: \"reason\" is missing"}] "Bad arguments for Calculator: in hitlParameters: \"reason\" is missing"`,
		strings.Split(s.records("Calculator"), "\n")[0])
	s.decide("Gate", true, "")
	s.ended(engine.StatusSuccess)
	require.Contains(t, s.records("Gate"), `asked [{"reason":"I cannot count","toolParameters":{"input":"6*7"},"tool":"Calculator"}]`)
	require.Len(t, s.state.Run["Gate"], 1)
	require.Contains(t, s.log.String(), `Calculator#2 {"tool":"Calculator","input":"6*7"} -> [{"response":"42"}]`)
}

func TestNothingIsAskedAboutBadArguments(t *testing.T) {
	s := newScene(t, "Calculator ~> Gate ~> Agent")
	s.models.play("Agent", "", `Calculator {"toolParameters":{"wrong":1}} + Calculator nonsense + Calculator {"toolParameters":7}`+"\n"+`"{{results}}"`)
	s.start(`{"q":"go"}`)
	s.ended(engine.StatusSuccess)
	require.Empty(t, s.state.Run["Gate"])
	answers := answersIn(s.request("Agent", 1))
	require.Contains(t, answers[0], `in toolParameters: \"input\" is missing`)
	require.Contains(t, answers[1], `not a JSON object: nonsense`)
	require.Contains(t, answers[2], `in toolParameters: the value must be object, not number`)
}

// What is run is what was shown, also where encoders write it in another way, and
// after a restart.
func TestArgumentsAreRunAsShown(t *testing.T) {
	s := newScene(t, "Ledger: ledger {\"schema\":{\"type\":\"object\"}}\nLedger ~> Gate ~> Agent")
	given := `{ "text": "<a> & \u003cb\u003e ü \ud83d\ude00", "n": 1.0, "deep": {"toolParameters": [ {"x": 1e2} ]}, "tool": "mine" }`
	shown := `{"text":"<a> & <b> ü \ud83d\ude00","n":1.0,"deep":{"toolParameters":[{"x":1e2}]},"tool":"mine"}`
	s.models.play("Agent", "", `Ledger {"toolParameters":`+given+`}`+"\n"+`"{{results}}"`)
	s.start(`{"q":"go"}`)
	s.restart()
	s.decide("Gate", true, "")
	s.ended(engine.StatusSuccess)
	require.Equal(t, []string{"Ledger " + shown}, s.ledger.lines)
}

// n8n adds the tool's name to an approved call's arguments. It goes to tools that
// look for the arguments they know, and to no others.
func TestNameAmongTheArguments(t *testing.T) {
	for _, tt := range []struct{ tool, called, want string }{
		{`Calculator: calculator`, `{"input":"1"}`, `{"tool":"Calculator","input":"1"}`},
		{`Ledger: ledger {"text":"={{ $fromAI('text') }}"}`, `{"text":"x"}`, `{"tool":"Ledger","text":"x"}`},
		{`Ledger: ledger {"text":"={{ $fromAI('text') }}","all":"={{ $json }}"}`, `{"text":"x"}`, `{"text":"x"}`},
		{`Ledger: ledger {"text":"={{ $fromAI('tool') }}"}`, `{"tool":"x"}`, `{"tool":"x"}`},
		{`Ledger: ledger {"schema":{"type":"object"}}`, `{"any":"x"}`, `{"any":"x"}`},
		{`Ledger: ledger`, `{}`, `{}`},
		{`Sub: agentTool`, `{"task":"x"}`, `{"tool":"Sub","task":"x"}`},
	} {
		t.Run(tt.tool, func(t *testing.T) {
			name, _, _ := strings.Cut(tt.tool, ":")
			s := newScene(t, tt.tool+"\n"+name+" ~> Gate ~> Agent")
			s.models.play("Agent", "", name+` {"toolParameters":`+tt.called+`}`+"\n"+`"done"`)
			s.start(`{"q":"go"}`)
			s.decide("Gate", true, "")
			s.ended(engine.StatusSuccess)
			require.Contains(t, s.records(name), " asked ["+tt.want+"] ")
		})
	}
}

func TestStepsOfGatedCalls(t *testing.T) {
	s := newScene(t, "Agent: agent {\"options\":{\"returnIntermediateSteps\":true}}\nCalculator ~> Gate ~> Agent")
	s.models.play("Agent", "", `Calculator {"toolParameters":{"input":"6*7"}} + Calculator {"input":"1"}`+"\n"+`"done"`)
	s.start(`{"q":"go"}`)
	s.decide("Gate#0", true, "")
	s.decide("Gate#1", false, "no")
	steps := gjson.Get(s.items("Agent")[0], "intermediateSteps")
	require.Equal(t, `["Calculator","Calculator"]`, steps.Get("#.action.tool").Raw)
	require.Equal(t, `[{"input":"6*7"},{"input":"1"}]`, steps.Get("#.action.toolInput").Raw)
	require.Equal(t, `["Calling Calculator","Calling Calculator"]`, steps.Get("#.action.log").Raw)
	require.Equal(t, `[{"response":"42"}]`, steps.Get("0.observation").Str)
	require.Contains(t, steps.Get("1.observation").Str, `provided feedback: \"no\"`)
}

func TestGatesThatCannotBe(t *testing.T) {
	for name, tt := range map[string]struct{ workflow, message string }{
		"around the gate":      {"Calculator ~> Gate ~> Agent\nCalculator ~> Agent", `The tool "Calculator" is connected both directly and through the approval "Gate"`},
		"a gate behind a gate": {"Calculator ~> Gate two ~> Gate ~> Agent", `"Gate two" cannot stand behind the approval "Gate"`},
		"a parameter":          {"Gate: gate {\"message\":\"={{ $fromAI('a b') }}\"}\nCalculator ~> Gate ~> Agent", `The parameters of "Gate" are not understood`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, tt.workflow)
			s.start(`{"q":"go"}`)
			s.ended(engine.StatusError)
			require.Equal(t, tt.message, s.state.Meta.Error.Message)
			require.NotEmpty(t, s.state.Meta.Error.Description)
			require.Zero(t, s.asks("Agent"))
		})
	}
}

// A name that was made distinct is never the name that another tool has of itself: a gate
// finds the tool it asks about by the name.
func TestDistinctNamesAreNobodyElses(t *testing.T) {
	box := &toolbox{byName: map[string]*tool{}, own: map[string]bool{"Report": true, "Report_2": true}}
	var names []string
	for _, name := range []string{"Report", "Report", "Report_2"} {
		added := &tool{name: name}
		box.add(added)
		names = append(names, added.name)
	}
	require.Equal(t, []string{"Report", "Report_3", "Report_2"}, names)
}

// Each gated round stores what is new, and nothing of it is stored twice.
func TestGatedRoundsCostTheSame(t *testing.T) {
	s := newScene(t, "Agent: agent {\"options\":{\"maxIterations\":50}}\nThink ~> Gate ~> Agent")
	s.models.play("Agent", "", strings.Repeat(`Think {"toolParameters":{"input":"`+strings.Repeat("x", 200)+`"}}`+"\n", 20)+`"end"`)
	s.start(`{"q":"go"}`)
	var sizes []int
	for range 20 {
		if n := len(s.state.Rounds[engine.RunRef{Node: "Agent"}]); n > 3 {
			sizes = append(sizes, len(s.state.Rounds[engine.RunRef{Node: "Agent"}][n-1].Metadata))
			require.JSONEq(t, `{}`, string(s.state.Rounds[engine.RunRef{Node: "Agent"}][n-2].Metadata), "the round of an approved call says nothing new")
		}
		s.decide("Gate", true, "")
	}
	s.ended(engine.StatusSuccess)
	require.InDelta(t, sizes[0], sizes[len(sizes)-1], 5)
}

// TestAnyDecisions lets models call free and gated tools at random, in an agent and a
// sub-agent, people decide at random and in any order, and processes restart in between.
// Whatever happens: histories are strict (the model's server sees to it), a gated tool runs
// once for each yes and never without, and a free one once for each call.
func TestAnyDecisions(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newScene(t, `
			Gate: gate {"timeout":1000}
			Ledger gated: ledger {"schema":{"type":"object"}}
			Ledger free: ledger {"schema":{"type":"object"}}
			Ledger gated ~> Gate ~> Agent
			Ledger free ~> Agent
			Ledger inner: ledger {"schema":{"type":"object"}}
			Ledger inner ~> Gate inner ~> Sub ~> Agent`)
		defer s.models.Close()
		var items, want []string
		for i := range rapid.IntRange(1, 3).Draw(rt, "items") {
			var turns []string
			for n := range rapid.IntRange(0, 3).Draw(rt, "turns") {
				var calls []string
				for k := range rapid.IntRange(1, 3).Draw(rt, "calls") {
					id := fmt.Sprintf("%d.%d.%d", i, n, k)
					call := rapid.SampledFrom([]string{
						`Ledger_gated {"toolParameters":{"id":"` + id + `"}}`, `Ledger_gated {"id":"` + id + `"}`, `Ledger_gated {"toolParameters":[]}`,
						`Ledger_free {"id":"` + id + `"}`, `Sub {"task":"` + id + `"}`, `Nowhere {}`,
					}).Draw(rt, "call")
					if strings.HasPrefix(call, "Ledger_free") {
						want = append(want, `Ledger free {"id":"`+id+`"}`)
					}
					calls = append(calls, rapid.SampledFrom([]string{"a:", "", "b:"}).Draw(rt, "id")+call)
				}
				turns = append(turns, strings.Join(calls, " + "))
			}
			items = append(items, fmt.Sprintf(`{"q":"item %d"}`, i))
			s.models.play("Agent", fmt.Sprintf("item %d", i), strings.Join(append(turns, fmt.Sprintf(`"end %d"`, i)), "\n"))
		}
		s.models.play("Sub", "", `Ledger_inner {"toolParameters":{"n":1}}`+"\n"+`"done"`)
		s.start(items...)
		for s.state.Meta.Status == engine.StatusWaiting {
			if rapid.Bool().Draw(rt, "restart") {
				s.restart()
			}
			parked := s.state.ParkedInOrder()
			p := parked[rapid.IntRange(0, len(parked)-1).Draw(rt, "which")]
			switch how := rapid.IntRange(0, 2).Draw(rt, "how"); {
			case how == 2 && p.Wait.Until != 0:
				s.expire(run(p.Entry.RunRef()))
			case how == 1:
				s.decideToken(p.Token, false, rapid.SampledFrom([]string{"", "no"}).Draw(rt, "feedback"))
			default:
				tool := map[string]string{"Gate": "Ledger gated", "Gate inner": "Ledger inner"}[p.Entry.Node]
				want = append(want, tool+" "+string(p.Wait.Question.Arguments))
				s.decideToken(p.Token, true, "")
			}
		}
		if s.state.Meta.Status != engine.StatusSuccess {
			rt.Fatalf("ended %s\n%s", s.state.Meta.Status, s.log.String())
		}
		for i, item := range s.items("Agent") {
			if item != fmt.Sprintf(`{"output":"end %d"}`, i) {
				rt.Fatalf("item %d: %s\n%s", i, item, s.log.String())
			}
		}
		counts := map[string]int{}
		for _, line := range want {
			counts[line]++
		}
		for _, line := range s.ledger.lines {
			counts[line]--
		}
		for line, n := range counts {
			if n != 0 {
				rt.Fatalf("%s: %d runs too few\n%s", line, n, s.log.String())
			}
		}
		if t.Failed() {
			rt.Fatalf("a request was refused\n%s", s.log.String())
		}
	})
}
