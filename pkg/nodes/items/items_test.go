package items

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// trial is one run of a node: what it was told and given, and what came of it.
type trial struct {
	name       string
	version    float64 // 0 is the latest
	parameters string
	inputs     []workflow.Items // nil: the items of the test
	want, err  string           // outputs as rendered, or the error
	hint       string           // the first one
}

func try(t *testing.T, nodeType *node.Type, items workflow.Items, trials []trial) {
	t.Helper()
	for _, test := range trials {
		t.Run(test.name, func(t *testing.T) {
			inputs := test.inputs
			if inputs == nil {
				inputs = []workflow.Items{items}
			}
			call := nodestest.Call(nodeType, test.parameters, inputs...)
			if test.version != 0 {
				call.Node.TypeVersion = test.version
			}
			result, err := nodeType.Execute(context.Background(), call)
			if test.err != "" {
				var failure *engine.NodeError
				if !errors.As(err, &failure) || failure.Message != test.err {
					t.Fatalf("error: got %v, want %s", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := render(result.Outputs); got != test.want {
				t.Errorf("got %s\nwant %s", got, test.want)
			}
			first := ""
			if len(result.Hints) > 0 {
				first = result.Hints[0].Message
			}
			if first != test.hint {
				t.Errorf("hint: got %q, want %q", first, test.hint)
			}
		})
	}
}

// one is the rendering of output 0.
func one(lines ...string) string {
	text := "\n  output 0"
	for _, line := range lines {
		text += "\n    " + line
	}
	return text
}

func files(names ...string) map[string]workflow.Binary {
	all := map[string]workflow.Binary{}
	for _, name := range names {
		all[name] = workflow.Binary{FileName: name + ".txt", Data: "AA=="}
	}
	return all
}

func TestSplitOut(t *testing.T) {
	items := nodestest.Items(`{"k":"a","f":"l","a.b":[8],"a":{"b":[1,2],"c":3},"l":[[5,6],null,"x"],"n":null,"m":[{"x":1}]}`)
	withFiles := nodestest.Items(`{"l":[1,2]}`)
	withFiles[0].Binary = files("one", "two")
	try(t, SplitOut(), items, []trial{
		{name: "a whole key goes before a path", parameters: `{"fieldToSplitOut":"a.b"}`, want: one(`{"a.b":8} {"item":0}`)},
		{name: "a path", parameters: `{"fieldToSplitOut":"a.c","include":"selectedOtherFields","fieldsToInclude":"k, a.b"}`, want: one(`{"a.b":[8],"a.c":3,"k":"a"} {"item":0}`)},
		{name: "no dot notation", parameters: `{"fieldToSplitOut":"a.c","options":{"disableDotNotation":true}}`, want: "", hint: "The field 'a.c' wasn't found in any input item"},
		{name: "lists in a list, null and text", parameters: `{"fieldToSplitOut":"l"}`, want: one(`{"0":5,"1":6} {"item":0}`, `{"l":null} {"item":0}`, `{"l":"x"} {"item":0}`)},
		{name: "null", parameters: `{"fieldToSplitOut":"n"}`, want: one(`{"n":null} {"item":0}`)},
		{name: "a name that is computed", parameters: `{"fieldToSplitOut":"={{ $json.f }}","options":{"destinationFieldName":"d"}}`, want: one(`{"d":[5,6]} {"item":0}`, `{"d":null} {"item":0}`, `{"d":"x"} {"item":0}`)},
		{name: "two fields to two others", parameters: `{"fieldToSplitOut":"m,l","options":{"destinationFieldName":"p, q"}}`, want: one(`{"p":{"x":1},"q":[5,6]} {"item":0}`, `{"q":null} {"item":0}`, `{"q":"x"} {"item":0}`)},
		{name: "all others without the nested one", parameters: `{"fieldToSplitOut":"a.c","include":"allOtherFields"}`,
			inputs: []workflow.Items{nodestest.Items(`{"a":{"b":1,"c":[2]}}`)}, want: one(`{"a":{"b":1},"a.c":2} {"item":0}`)},
		{name: "files stay", parameters: `{"fieldToSplitOut":"l","options":{"includeBinary":true}}`, inputs: []workflow.Items{withFiles},
			want: one(`{"l":1} {"item":0} one=one.txt two=two.txt`, `{"l":2} {"item":0} one=one.txt two=two.txt`)},
		{name: "files are left", parameters: `{"fieldToSplitOut":"l"}`, inputs: []workflow.Items{withFiles}, want: one(`{"l":1} {"item":0}`, `{"l":2} {"item":0}`)},
		{name: "files are split", parameters: `{"fieldToSplitOut":"$binary"}`, inputs: []workflow.Items{withFiles}, want: one(`{} {"item":0} one=one.txt`, `{} {"item":0} two=two.txt`)},
		{name: "no field", parameters: `{}`, err: "No field to split out is given"},
		{name: "content instead of a name", parameters: `{"fieldToSplitOut":"={{ $json.l }}"}`, err: "The parameter 'fieldToSplitOut' is a list, but it has to name a field"},
		{name: "an object instead of a name", parameters: `{"fieldToSplitOut":"={{ $json.a }}"}`, err: "The parameter 'fieldToSplitOut' is an object, but it has to name a field"},
		{name: "too few destinations", parameters: `{"fieldToSplitOut":"m,l","options":{"destinationFieldName":"p"}}`, err: "There are 2 fields to split out, but 1 destination fields"},
		{name: "nothing selected", parameters: `{"fieldToSplitOut":"l","include":"selectedOtherFields","fieldsToInclude":""}`, err: "No fields specified"},
		{name: "unknown include", parameters: `{"fieldToSplitOut":"l","include":"some"}`, err: "The value 'some' of 'Include' is unknown"},
		{name: "an option that is no switch", parameters: `{"fieldToSplitOut":"l","options":{"includeBinary":"maybe"}}`, err: `"maybe" is neither true nor false`},
	})
}

func TestSplitOutGoesOn(t *testing.T) {
	call := nodestest.Call(SplitOut(), `{"fieldToSplitOut":"={{ $json.f }}"}`, nodestest.Items(`{"f":["x"]}`, `{"f":"n","n":[1]}`))
	call.Node.OnError = workflow.OnErrorContinue
	result, err := call.Type.Execute(context.Background(), call)
	if err != nil {
		t.Fatal(err)
	}
	// A list of names will do.
	if got, want := render(result.Outputs), one(`{"n":1} {"item":1}`); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	call = nodestest.Call(SplitOut(), `{"fieldToSplitOut":"={{ $json.f }}"}`, nodestest.Items(`{"f":{"a":1}}`, `{"f":"n","n":[1]}`))
	call.Node.OnError = workflow.OnErrorContinue
	if result, err = call.Type.Execute(context.Background(), call); err != nil {
		t.Fatal(err)
	}
	if got, want := render(result.Outputs), one(`{"error":"The parameter 'fieldToSplitOut' is an object, but it has to name a field"} {"item":0}`, `{"n":1} {"item":1}`); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAggregate(t *testing.T) {
	items := nodestest.Items(`{"id":1,"o":{"v":"a"},"l":[1,null]}`, `{"id":2,"o":{"v":null},"l":2}`, `{"z":0}`)
	withFiles := nodestest.Items(`{"id":1}`, `{"id":2}`)
	withFiles[0].Binary, withFiles[1].Binary = files("f"), files("f", "g")
	try(t, Aggregate(), items, []trial{
		{name: "a path is named by its end", parameters: fields(`{"fieldToAggregate":"o.v"}`), want: one(`{"v":["a"]} [{"item":0},{"item":1},{"item":2}]`)},
		{name: "missing ones too", parameters: fields(`{"fieldToAggregate":"o.v"},{"fieldToAggregate":"id"}`, `"keepMissing":true`), want: one(`{"id":[1,2,null],"v":["a",null,null]} [{"item":0},{"item":1},{"item":2}]`)},
		{name: "a new name, nested", parameters: fields(`{"fieldToAggregate":"id","renameField":true,"outputFieldName":"x.ids"}`), want: one(`{"x":{"ids":[1,2]}} [{"item":0},{"item":1},{"item":2}]`)},
		{name: "a new name that is switched off", parameters: fields(`{"fieldToAggregate":"id","renameField":false,"outputFieldName":"ids"}`), want: one(`{"id":[1,2]} [{"item":0},{"item":1},{"item":2}]`)},
		{name: "lists", parameters: fields(`{"fieldToAggregate":"l"}`), want: one(`{"l":[[1],2]} [{"item":0},{"item":1},{"item":2}]`)},
		{name: "lists as one", parameters: fields(`{"fieldToAggregate":"l"}`, `"mergeLists":true,"keepMissing":true`), want: one(`{"l":[1,null,2,null]} [{"item":0},{"item":1},{"item":2}]`)},
		{name: "no dot notation", parameters: fields(`{"fieldToAggregate":"o.v"}`, `"disableDotNotation":true`), want: one(`{"o.v":[]} [{"item":0},{"item":1},{"item":2}]`), hint: "The field 'o.v' wasn't found in any input item"},
		{name: "nothing named", parameters: `{}`, want: one(`{} [{"item":0},{"item":1},{"item":2}]`), hint: "No field to aggregate is named, so the item is empty. Name one in 'Fields To Aggregate'."},
		{name: "files", parameters: fields(`{"fieldToAggregate":"id"}`, `"includeBinaries":true`), inputs: []workflow.Items{withFiles}, want: one(`{"id":[1,2]} [{"item":0},{"item":1}] f=f.txt f_1=f.txt g=g.txt`)},
		{name: "each file once", parameters: fields(`{"fieldToAggregate":"id"}`, `"includeBinaries":true,"keepOnlyUnique":true`), inputs: []workflow.Items{withFiles}, want: one(`{"id":[1,2]} [{"item":0},{"item":1}] f=f.txt g=g.txt`)},
		{name: "all data but what is empty", parameters: `{"aggregate":"aggregateAllItemData","include":"allFieldsExcept","fieldsToExclude":"o,l,id","options":{}}`, want: one(`{"data":[{"z":0}]} [{"item":0},{"item":1},{"item":2}]`)},
		{name: "a name used twice", parameters: fields(`{"fieldToAggregate":"id"},{"fieldToAggregate":"l","renameField":true,"outputFieldName":"id"}`), err: "The 'id' output field is used more than once"},
		{name: "no rows", parameters: `{"fieldsToAggregate":{"fieldToAggregate":[]}}`, err: "No fields specified"},
		{name: "content instead of a name", parameters: fields(`{"fieldToAggregate":"={{ $json.l }}"}`), err: "The parameter 'fieldToAggregate' is a list, but it has to name a field"},
		{name: "nothing to include", parameters: `{"aggregate":"aggregateAllItemData","include":"specifiedFields"}`, err: "No fields specified"},
		{name: "no place for the list", parameters: `{"aggregate":"aggregateAllItemData","destinationFieldName":""}`, err: "No output field is named"},
		{name: "unknown kind", parameters: `{"aggregate":"all"}`, err: "The value 'all' of 'Aggregate' is unknown"},
	})
}

// fields are parameters of Aggregate.
func fields(rows string, options ...string) string {
	text := ""
	for _, option := range options {
		text += option
	}
	return `{"fieldsToAggregate":{"fieldToAggregate":[` + rows + `]},"options":{` + text + `}}`
}

func TestRenameKeys(t *testing.T) {
	items := nodestest.Items(`{"a":1,"b":{"a_x":2,"c":[{"a_y":3}]},"d":"t"}`)
	items[0].Binary = files("f")
	regex := func(search, replace, options string) string {
		return `{"additionalOptions":{"regexReplacement":{"replacements":[{"searchRegex":"` + search + `","replaceRegex":"` + replace + `","options":{` + options + `}}]}}}`
	}
	try(t, RenameKeys(), items, []trial{
		{name: "keys, nested ones, and what is not there", parameters: `{"keys":{"key":[{"currentKey":"a","newKey":"x.y"},{"currentKey":"b.a_x","newKey":"z"},{"currentKey":"nope","newKey":"q"},{"currentKey":"d","newKey":""}]}}`,
			want: one(`{"b":{"c":[{"a_y":3}]},"d":"t","x":{"y":1},"z":2} {"item":0} f=f.txt`)},
		{name: "a pattern on all levels", parameters: regex(`^a_(\\w)`, `$1-$&-$$-$`, ""), want: one(`{"a":1,"b":{"c":[{"y-a_y-$-$":3}],"x-a_x-$-$":2},"d":"t"} {"item":0} f=f.txt`)},
		{name: "on the top level", parameters: regex("A", "n", `"depth":0,"caseInsensitive":true`), want: one(`{"b":{"a_x":2,"c":[{"a_y":3}]},"d":"t","n":1} {"item":0} f=f.txt`)},
		{name: "one level deeper", parameters: regex("a", "n", `"depth":1`), want: one(`{"b":{"c":[{"a_y":3}],"n_x":2},"d":"t","n":1} {"item":0} f=f.txt`)},
		{name: "no match in another case", parameters: regex("A", "n", ""), want: one(`{"a":1,"b":{"a_x":2,"c":[{"a_y":3}]},"d":"t"} {"item":0} f=f.txt`)},
		{name: "a bad pattern", parameters: regex("(", "n", ""), err: "The regular expression '(' cannot be used: error parsing regexp: missing closing ): `(`"},
		{name: "a depth that is no number", parameters: regex("a", "n", `"depth":"all"`), err: "The max depth 'all' is not a number"},
	})
}

func TestItemLists(t *testing.T) {
	items := nodestest.Items(`{"id":2,"s":"x","l":[1,2]}`, `{"id":1,"s":"x","l":[3]}`)
	try(t, ItemLists(), items, []trial{
		{name: "version 1: fields as rows", version: 1, parameters: `{"fieldToSplitOut":"l","include":"selectedOtherFields","fieldsToInclude":{"fields":[{"fieldName":"id"}]},"options":{}}`,
			want: one(`{"id":2,"l":1} {"item":0}`, `{"id":2,"l":2} {"item":0}`, `{"id":1,"l":3} {"item":1}`)},
		{name: "version 1: a missing field", version: 1, parameters: `{"fieldToSplitOut":"nope"}`, err: "Couldn't find the field 'nope' in the input data"},
		{name: "version 2: no list", version: 2, parameters: `{"fieldToSplitOut":"s"}`, err: "The provided field 's' is not an array"},
		{name: "version 3: no list", version: 3, parameters: `{"fieldToSplitOut":"s"}`, want: one(`{"s":"x"} {"item":0}`, `{"s":"x"} {"item":1}`)},
		{name: "version 1: aggregate", version: 1, parameters: `{"operation":"aggregateItems","fieldsToAggregate":{"fieldToAggregate":[{"fieldToAggregate":"id"}]}}`, want: one(`{"id":[2,1]} [{"item":0},{"item":1}]`)},
		{name: "version 2.2: all data", version: 2.2, parameters: `{"operation":"aggregateItems","aggregate":"aggregateAllItemData","include":"specifiedFields","fieldsToInclude":{"fields":[{"fieldName":"id"}]}}`, want: one(`{"data":[{"id":2},{"id":1}]} [{"item":0},{"item":1}]`)},
		{name: "version 2.1: duplicates", version: 2.1, parameters: `{"operation":"removeDuplicates","compare":"selectedFields","fieldsToCompare":{"fields":[{"fieldName":"s"}]}}`, want: one(`{"id":2,"l":[1,2],"s":"x"} {"item":0}`)},
		{name: "version 1: sort", version: 1, parameters: `{"operation":"sort","sortFieldsUi":{"sortField":[{"fieldName":"id"}]}}`, want: one(`{"id":1,"l":[3],"s":"x"} {"item":1}`, `{"id":2,"l":[1,2],"s":"x"} {"item":0}`)},
		{name: "version 3: the last ones", version: 3, parameters: `{"operation":"limit","maxItems":1,"keep":"lastItems"}`, want: one(`{"id":1,"l":[3],"s":"x"} {"item":1}`)},
		{name: "version 3: summarize", version: 3, parameters: `{"operation":"summarize","fieldsToSummarize":{"values":[{"aggregation":"sum","field":"id"}]},"fieldsToSplitBy":"s"}`, want: one(`{"s":"x","sum_id":3} [{"item":0},{"item":1}]`)},
		{name: "a missing field", version: 3, parameters: `{"operation":"concatenateItems","fieldsToAggregate":{"fieldToAggregate":[{"fieldToAggregate":"nope"}]}}`, err: "Couldn't find the field 'nope' in the input data"},
		{name: "an unknown operation", parameters: `{"operation":"join"}`, err: "The operation 'join' is unknown"},
		{name: "an unknown end", parameters: `{"operation":"limit","keep":"middle"}`, err: "The value 'middle' of 'Keep' is unknown"},
	})
}

// render writes outputs for comparison, keys sorted and files by their names: trailing empty ones
// count as absent.
func render(outputs []workflow.Items) string {
	for len(outputs) > 0 && len(outputs[len(outputs)-1]) == 0 {
		outputs = outputs[:len(outputs)-1]
	}
	var b strings.Builder
	for i, items := range outputs {
		fmt.Fprintf(&b, "\n  output %d", i)
		for _, item := range items {
			paired, _ := json.Marshal(item.PairedItem)
			fmt.Fprintf(&b, "\n    %s %s", canonical(string(item.JSON)), paired)
			for _, name := range fileNames(item) {
				fmt.Fprintf(&b, " %s=%s", name, item.Binary[name].FileName)
			}
		}
	}
	return b.String()
}
