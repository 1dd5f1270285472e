package expression

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// fact is a line of testdata/expressions.jsonl: an expression and what n8n 2.41.1
// made of it.
type fact struct {
	ID      string          `json:"id"`
	Expr    string          `json:"expr"`
	Context string          `json:"context"`
	Item    int             `json:"item"`
	JSON    json.RawMessage `json:"json"`
	Type    string          `json:"type"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Name, Message, Description, Type string
	} `json:"error"`
}

func facts(tb testing.TB) []fact {
	tb.Helper()
	f, err := os.Open("testdata/expressions.jsonl")
	require.NoError(tb, err)
	defer f.Close()
	var list []fact
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var one fact
		require.NoError(tb, json.Unmarshal(lines.Bytes(), &one))
		list = append(list, one)
	}
	require.NoError(tb, lines.Err())
	return list
}

// runData is a fixed set of records.
type runData map[string][]record

type record struct {
	outputs []workflow.Items
	sources []*workflow.Source
}

func (r runData) Runs(node string) int { return len(r[node]) }

func (r runData) Items(node string, run, output int) (workflow.Items, bool) {
	if run < 0 || run >= len(r[node]) || output < 0 || output >= len(r[node][run].outputs) {
		return nil, false
	}
	return r[node][run].outputs[output], true
}

func (r runData) Sources(node string, run int) []*workflow.Source {
	if run < 0 || run >= len(r[node]) {
		return nil
	}
	return r[node][run].sources
}

func from(node string) []*workflow.Source { return []*workflow.Source{{PreviousNode: node}} }

// contexts builds the scopes of the two workflows in testdata/context.json.
func contexts(tb testing.TB) func(f fact) *Scope {
	tb.Helper()
	raw, err := os.ReadFile("testdata/context.json")
	require.NoError(tb, err)
	var file struct {
		DefaultJSON json.RawMessage            `json:"defaultJson"`
		Workflows   map[string]json.RawMessage `json:"workflows"`
	}
	require.NoError(tb, json.Unmarshal(raw, &file))
	documents := map[string]*workflow.Workflow{}
	for name, document := range file.Workflows {
		documents[name], err = workflow.Parse(document)
		require.NoError(tb, err)
	}
	empty := workflow.Items{{JSON: json.RawMessage("{}"), PairedItem: workflow.Paired(0)}}
	return func(f fact) *Scope {
		name := f.Context
		if name == "" {
			name = "simple"
		}
		w := documents[name]
		node := *w.Node("Expr")
		var parameters map[string]any
		require.NoError(tb, json.Unmarshal(node.Parameters, &parameters))
		parameters["values"].(map[string]any)["string"].([]any)[0].(map[string]any)["value"] = f.Expr
		node.Parameters, _ = json.Marshal(parameters)
		s := &Scope{Node: &node, Nodes: map[string]*workflow.Node{}, Timezone: w.Settings.Timezone, Now: time.Now(), Ancestors: w.Ancestors("Expr")}
		for _, n := range w.Nodes {
			s.Nodes[n.Name] = n
		}
		s.Workflow.ID, s.Workflow.Name = w.ID, w.Name
		s.Execution.ID, s.Execution.Mode = "1", "cli"
		s.Execution.ResumeURL, s.Execution.ResumeFormURL = "http://localhost:5678/webhook-waiting/1", "http://localhost:5678/form-waiting/1"
		data := runData{"Start": {{outputs: []workflow.Items{empty}}}}
		if name == "simple" {
			item := f.JSON
			if item == nil {
				item = file.DefaultJSON
			}
			items := workflow.Items{{JSON: item, PairedItem: workflow.Paired(0)}}
			data["Input"] = []record{{[]workflow.Items{items}, from("Start")}}
			s.Inputs, s.Sources = []workflow.Items{items}, from("Input")
		} else {
			var items, middle, stamped workflow.Items
			for i, label := range []string{"ten", "twenty", "thirty"} {
				n := 10 * (i + 1)
				fields := fmt.Sprintf(`"n":%d,"label":%q,"deep":{"list":["a%d"]}`, n, label, n)
				items = append(items, workflow.Item{JSON: json.RawMessage("{" + fields + "}"), PairedItem: workflow.Paired(0)})
				m := workflow.Item{JSON: json.RawMessage(fmt.Sprintf(`{"m":"m%d",%s}`, n, fields)), PairedItem: workflow.Paired(i)}
				middle = append(middle, m)
				stamped = append(stamped, m)
			}
			data["Items"] = []record{{[]workflow.Items{items}, from("Start")}}
			data["Filtered"] = []record{{[]workflow.Items{{items[1], items[2]}, {items[0]}}, from("Items")}}
			data["Pruned"] = []record{{[]workflow.Items{{{JSON: json.RawMessage(`{"n":1}`)}}}, from("Items")}}
			data["Nothing"] = []record{{[]workflow.Items{{}}, from("Items")}}
			data["Middle"] = []record{{[]workflow.Items{middle}, from("Items")}}
			s.Inputs, s.Sources = []workflow.Items{stamped}, from("Middle")
		}
		s.RunData = data
		return s
	}
}

// check compares an outcome with a fact and says how they differ.
func (f fact) check(v Value, err error) string {
	if f.Error != nil {
		e, ok := err.(*Error)
		if !ok {
			return fmt.Sprintf("got %s %s %v, want error %q", v.JSON, v.Kind, err, f.Error.Message)
		}
		if e.Message != f.Error.Message || f.Error.Type != "" && e.Type != f.Error.Type {
			return fmt.Sprintf("got error %q (%s), want %q (%s)", e.Message, e.Type, f.Error.Message, f.Error.Type)
		}
		return ""
	}
	if err != nil {
		return fmt.Sprintf("got error %v, want %s %s", err, f.Type, f.Result)
	}
	kind := ""
	switch f.Type {
	case "undefined", "NaN", "Infinity", "-Infinity":
		kind = f.Type
	}
	if v.Kind != kind || kind != "undefined" && !sameJSON(v.JSON, f.Result) {
		return fmt.Sprintf("got %s %s, want %s %s", v.JSON, v.Kind, f.Type, f.Result)
	}
	return ""
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	if fx, ok := x.(float64); ok {
		if fy, ok := y.(float64); ok {
			return fx == fy || math.Abs(fx-fy) < 1e-12*math.Abs(fx)
		}
	}
	return reflect.DeepEqual(x, y)
}

// different are the facts that do not hold here, each with its reason.
var different = map[string]string{
	"helpers-076": "n8n adds the default values of parameters that the document leaves out",
	"nodes-046":   "as above",
	"helpers-078": "an internal function of n8n",
}

func TestGolden(t *testing.T) {
	e, err := New()
	require.NoError(t, err)
	defer e.Close()
	scope := contexts(t)
	for _, f := range facts(t) {
		v, err := e.Evaluate(t.Context(), scope(f), f.Item, f.Expr)
		difference := f.check(v, err)
		if reason, known := different[f.ID]; known {
			require.NotEmpty(t, difference, "%s holds now; it was said to differ because %s", f.ID, reason)
			continue
		}
		require.Empty(t, difference, "%s %s", f.ID, f.Expr)
	}
}
