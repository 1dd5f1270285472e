package expression

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

func item(id string, links ...workflow.PairedItem) workflow.Item {
	return workflow.Item{JSON: json.RawMessage(fmt.Sprintf(`{"id":%q}`, id)), PairedItem: links}
}

func link(i int) workflow.PairedItem { return workflow.PairedItem{Item: i} }

func source(node string, run, output int) *workflow.Source {
	return &workflow.Source{PreviousNode: node, PreviousNodeRun: run, PreviousNodeOutput: output}
}

func one(outputs ...workflow.Items) []record {
	return []record{{outputs: outputs}}
}

func TestPairedItems(t *testing.T) {
	trigger := one(workflow.Items{item("t0"), item("t1")})
	source0 := func(node string) []*workflow.Source { return []*workflow.Source{source(node, 0, 0)} }
	for _, row := range []struct {
		name   string
		data   runData
		input  workflow.Items
		source []*workflow.Source
		item   int
		want   string // id of T's item, or the error's type
	}{
		{"direct", runData{"T": trigger}, workflow.Items{item("t0"), item("t1")}, source0("T"), 1, "t1"},
		{"over a node that turned the order round", runData{
			"T": trigger, "A": {{[]workflow.Items{{item("a0", link(1)), item("a1", link(0))}}, source0("T")}},
		}, workflow.Items{item("a0"), item("a1")}, source0("A"), 0, "t1"},
		{"over the second output of an If", runData{
			"T": trigger, "If": {{[]workflow.Items{{item("t0", link(0))}, {item("t1", link(1))}}, source0("T")}},
		}, workflow.Items{item("t1")}, []*workflow.Source{source("If", 0, 1)}, 0, "t1"},
		{"over the second input of a Merge", runData{
			"T": trigger, "L": {{[]workflow.Items{{item("l", link(0))}}, source0("T")}}, "R": {{[]workflow.Items{{item("r", link(1))}}, source0("T")}},
			"M": {{[]workflow.Items{{item("m", workflow.PairedItem{Item: 0, Input: 1})}}, []*workflow.Source{source("L", 0, 0), source("R", 0, 0)}}},
		}, workflow.Items{item("m")}, source0("M"), 0, "t1"},
		{"two links to one item", runData{
			"T": trigger, "A": {{[]workflow.Items{{item("a", link(0), link(0))}}, source0("T")}},
		}, workflow.Items{item("a")}, source0("A"), 0, "t0"},
		{"two links to two items", runData{
			"T": trigger, "A": {{[]workflow.Items{{item("a", link(0), link(1))}}, source0("T")}},
		}, workflow.Items{item("a")}, source0("A"), 0, "paired_item_multiple_matches"},
		{"no link", runData{
			"T": trigger, "A": {{[]workflow.Items{{item("a")}}, source0("T")}},
		}, workflow.Items{item("a")}, source0("A"), 0, "paired_item_no_info"},
		{"a link to nowhere", runData{
			"T": trigger, "A": {{[]workflow.Items{{item("a", link(7))}}, source0("T")}},
		}, workflow.Items{item("a")}, source0("A"), 0, "paired_item_invalid_info"},
		{"another trigger", runData{"T": trigger, "Other": one(workflow.Items{item("o")})}, workflow.Items{item("o")}, source0("Other"), 0, "paired_item_no_connection"},
		{"not executed", runData{"Other": one(workflow.Items{item("o")})}, workflow.Items{item("o")}, source0("Other"), 0, "no_execution_data"},
		{"no such item", runData{"T": trigger}, workflow.Items{item("t0")}, source0("T"), 3, "paired_item_intermediate_nodes"},
		{"an earlier run of a loop", runData{
			"T": {{outputs: []workflow.Items{{item("first")}}}, {outputs: []workflow.Items{{item("second")}}}},
			"A": {{[]workflow.Items{{item("a", link(0))}}, []*workflow.Source{source("T", 0, 0)}}, {[]workflow.Items{{item("a", link(0))}}, []*workflow.Source{source("T", 1, 0)}}},
		}, workflow.Items{item("a")}, []*workflow.Source{source("A", 0, 0)}, 0, "first"},
		{"a source that replaces the record's", runData{
			"T": trigger, "A": {{[]workflow.Items{{item("a", workflow.PairedItem{Item: 1, SourceOverwrite: source("T", 0, 0)})}}, source0("Elsewhere")}},
		}, workflow.Items{item("a")}, source0("A"), 0, "t1"},
		{"an input item with a source of its own", runData{"T": trigger},
			workflow.Items{item("x", workflow.PairedItem{Item: 1, SourceOverwrite: source("T", 0, 0)})}, source0("Agent"), 0, "t1"},
		{"a circle", runData{
			"T": trigger, "A": {{[]workflow.Items{{item("a", link(0))}}, source0("B")}}, "B": {{[]workflow.Items{{item("b", link(0))}}, source0("A")}},
		}, workflow.Items{item("a")}, source0("A"), 0, "paired_item_no_connection"},
	} {
		t.Run(row.name, func(t *testing.T) {
			for i := range row.input {
				if row.input[i].PairedItem == nil {
					row.input[i].PairedItem = workflow.Paired(i)
				}
			}
			s := &Scope{Inputs: []workflow.Items{row.input}, Sources: row.source, RunData: row.data}
			got, err := s.paired("T", row.item)
			if err != nil {
				require.Equal(t, row.want, err.(*Error).Type, err)
				return
			}
			require.JSONEq(t, fmt.Sprintf(`{"id":%q}`, row.want), string(got.JSON))
		})
	}
}

// TestLineageOfALongLoop: a chain over thousands of runs neither overflows nor
// takes long.
func TestLineageOfALongLoop(t *testing.T) {
	const rounds = 20_000
	data := runData{"T": one(workflow.Items{item("t")})}
	for i := range rounds {
		from := source("Loop", i-1, 0)
		if i == 0 {
			from = source("T", 0, 0)
		}
		data["Loop"] = append(data["Loop"], record{[]workflow.Items{{item("l", link(0))}}, []*workflow.Source{from}})
	}
	s := &Scope{Inputs: []workflow.Items{{item("l", link(0))}}, Sources: []*workflow.Source{source("Loop", rounds-1, 0)}, RunData: data}
	got, err := s.paired("T", 0)
	require.NoError(t, err)
	require.Equal(t, `{"id":"t"}`, string(got.JSON))
}

func TestOutputTowards(t *testing.T) {
	data := runData{
		"T":  one(workflow.Items{item("t0"), item("t1")}),
		"If": {{[]workflow.Items{{item("t0", link(0))}, {item("t1", link(1))}}, []*workflow.Source{source("T", 0, 0)}}},
		"A":  {{[]workflow.Items{{item("a", link(0))}}, []*workflow.Source{source("If", 0, 1)}}},
	}
	e, err := New()
	require.NoError(t, err)
	defer e.Close()
	s := &Scope{Inputs: []workflow.Items{{item("a", link(0))}}, Sources: []*workflow.Source{source("A", 0, 0)}, RunData: data}
	v, err := e.Evaluate(t.Context(), s, 0, "={{ $('If').first().json.id }}{{ $('If').all(0).length }}")
	require.NoError(t, err)
	require.Equal(t, `"t11"`, string(v.JSON))
}
