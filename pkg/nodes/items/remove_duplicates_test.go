package items

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

func TestRemoveDuplicates(t *testing.T) {
	items := nodestest.Items(`{"id":1,"o":{"b":1,"a":2},"x":0}`, `{"o":{"a":2,"b":1},"x":0,"id":1.0}`, `{"id":"1","o":{"a":2},"x":1}`, `{"id":1,"o":{"a":2},"x":2}`)
	a, c, d := `{"id":1,"o":{"a":2,"b":1},"x":0} {"item":0}`, `{"id":"1","o":{"a":2},"x":1} {"item":2}`, `{"id":1,"o":{"a":2},"x":2} {"item":3}`
	try(t, RemoveDuplicates(), items, []trial{
		{name: "all fields, in whatever order", parameters: `{"options":{}}`, want: one(a, c, d)},
		{name: "version 1", version: 1, parameters: `{"compare":"selectedFields","fieldsToCompare":"o.a"}`, want: one(a)},
		{name: "types are kept apart", version: 1.1, parameters: `{"compare":"selectedFields","fieldsToCompare":"id"}`, want: one(a, c)},
		{name: "all but nested ones", parameters: `{"compare":"allFieldsExcept","fieldsToExclude":"o.b, x"}`, want: one(a, c)},
		{name: "what is left of them", parameters: `{"compare":"selectedFields","fieldsToCompare":"o.a, id","options":{"removeOtherFields":true}}`, want: one(`{"id":1,"o":{"a":2}} {"item":0}`, `{"id":"1","o":{"a":2}} {"item":1}`)},
		{name: "what is left without the excluded ones", parameters: `{"compare":"allFieldsExcept","fieldsToExclude":"o,x","options":{"removeOtherFields":true}}`, want: one(`{"id":1} {"item":0}`, `{"id":"1"} {"item":1}`)},
		{name: "some lack a field", parameters: `{"compare":"selectedFields","fieldsToCompare":"o.b"}`, err: "'o.b' field is missing from some input items"},
		{name: "no dot notation", parameters: `{"compare":"selectedFields","fieldsToCompare":"o.a","options":{"disableDotNotation":true}}`, err: "'o.a' field is missing from some input items"},
		{name: "nothing to compare", parameters: `{"compare":"selectedFields","fieldsToCompare":" , "}`, err: "No fields specified. Please add a field to compare on"},
		{name: "nothing to exclude", parameters: `{"compare":"allFieldsExcept"}`, err: "No fields specified. Please add a field to exclude from comparison"},
		{name: "an unknown comparison", parameters: `{"compare":"someFields"}`, err: "The value 'someFields' of 'Compare' is unknown"},
		{name: "an unknown operation", parameters: `{"operation":"forget"}`, err: "The operation 'forget' is unknown"},
		{name: "an expression for a field", parameters: `{"compare":"selectedFields","fieldsToCompare":"={{ $json.o }}"}`, err: "The parameter 'fieldsToCompare' is an object, but it has to name a field"},
	})
}

// store keeps conversations as the coordinators do: the last limit messages.
type store struct {
	limit    int
	sessions map[string][]json.RawMessage
}

func (s *store) load(_ context.Context, session string, n int) ([]json.RawMessage, error) {
	all := s.sessions[session]
	if n > 0 && len(all) > n {
		all = all[len(all)-n:]
	}
	return all, nil
}

func (s *store) commit(appends []node.MemoryAppend) {
	for _, a := range appends {
		all := append(s.sessions[a.Session], a.Messages...)
		if over := len(all) - s.limit; over > 0 {
			all = all[over:]
		}
		s.sessions[a.Session] = all
	}
}

// execute runs the node on items with these ids and tells which were kept.
func (s *store) execute(t *testing.T, name, parameters string, ids ...string) (kept string, result *node.Result) {
	t.Helper()
	var objects []string
	for _, id := range ids {
		objects = append(objects, `{"id":`+id+`}`)
	}
	call := nodestest.Call(RemoveDuplicates(), parameters, nodestest.Items(objects...))
	call.Node.Name, call.Workflow.ID, call.LoadMemory = name, "w1", s.load
	result, err := call.Type.Execute(context.Background(), call)
	if err != nil {
		t.Fatal(err)
	}
	s.commit(result.Memory)
	var list []string
	for _, item := range result.Outputs[0] {
		list = append(list, strings.TrimSuffix(strings.TrimPrefix(string(item.JSON), `{"id":`), "}"))
	}
	if got := len(result.Outputs); got == 2 && len(result.Outputs[0])+len(result.Outputs[1]) != len(ids) {
		t.Errorf("%d items became %d and %d", len(ids), len(result.Outputs[0]), len(result.Outputs[1]))
	}
	return strings.Join(list, " "), result
}

func newStore() *store { return &store{limit: 1000, sessions: map[string][]json.RawMessage{}} }

// seen are parameters of the operation across executions.
func seen(parameters string) string {
	return `{"operation":"` + seenBefore + `",` + parameters + `}`
}

func TestRemoveItemsSeenBefore(t *testing.T) {
	byID := seen(`"dedupeValue":"={{ $json.id }}"`)
	shared := seen(`"dedupeValue":"={{ $json.id }}","options":{"scope":"workflow"}`)
	higher := seen(`"logic":"removeItemsUpToStoredIncrementalKey","incrementalDedupeValue":"={{ $json.id }}"`)
	later := seen(`"logic":"removeItemsUpToStoredDate","dateDedupeValue":"={{ $json.id }}"`)
	s := newStore()
	for i, step := range []struct{ node, parameters, ids, want string }{
		{"A", byID, `1 2 2 "x"`, `1 2 2 "x"`}, // repetitions in the input are not this operation's business
		{"A", byID, `2 3 "x"`, `3`},
		{"A", byID, `1 2 3`, ``},
		{"A", byID, `"3" [1]`, `[1]`}, // a number and its text are the same value
		{"A", byID, `[1]`, ``},
		{"B", byID, `1`, `1`}, // each node has its own history
		{"A", shared, `1 2`, `1 2`},
		{"B", shared, `2 3`, `3`}, // unless it is shared
		{"A", higher, `5 3 7`, `5 3 7`},
		{"A", higher, `7 8 "8.5" 6`, `8 "8.5"`},
		{"A", higher, `8.5 9`, `9`},
		{"A", later, `"2024-05-01T10:00:00Z" "2024-04-01"`, `"2024-05-01T10:00:00Z" "2024-04-01"`},
		{"A", later, `"2024-05-01T12:00:00+02:00" "2024-05-01T10:00:01"`, `"2024-05-01T10:00:01"`},
		{"A", byID, `1`, ``}, // the kinds of history do not disturb each other
		{"A", `{"operation":"clearDeduplicationHistory"}`, `1`, `1`},
		{"A", byID, `1`, `1`},
		{"A", higher, `1`, `1`},
		{"B", byID, `1`, ``},
		{"A", `{"operation":"clearDeduplicationHistory","options":{"scope":"workflow"}}`, `1`, `1`},
		{"B", shared, `1`, `1`},
		{"B", byID, `1`, ``},
	} {
		if got, _ := s.execute(t, step.node, step.parameters, strings.Fields(step.ids)...); got != step.want {
			t.Errorf("step %d, node %s, items %s: kept %s, want %s", i, step.node, step.ids, got, step.want)
		}
	}
}

func TestNothingNewIsNotNoted(t *testing.T) {
	s := newStore()
	s.execute(t, "A", seen(`"dedupeValue":"={{ $json.id }}"`), "1")
	if _, result := s.execute(t, "A", seen(`"dedupeValue":"={{ $json.id }}"`), "1"); len(result.Memory) != 0 {
		t.Errorf("got %v", result.Memory)
	}
}

func TestRepeatedRunKeepsWhatItNoted(t *testing.T) {
	s := newStore()
	parameters := seen(`"dedupeValue":"={{ $json.id }}"`)
	for i := range 2 * fullEvery { // some of the notes are full ones
		for attempt := range 2 {
			call := nodestest.Call(RemoveDuplicates(), parameters, nodestest.Items(`{"id":`+strconv.Itoa(i)+`}`, `{"id":-1}`))
			call.LoadMemory, call.IdempotencyKey = s.load, "run "+strconv.Itoa(i)
			result, err := call.Type.Execute(context.Background(), call)
			if err != nil {
				t.Fatal(err)
			}
			want := 1
			if i == 0 {
				want = 2
			}
			if got := len(result.Outputs[0]); got != want {
				t.Fatalf("run %d, attempt %d: kept %d items, want %d", i, attempt, got, want)
			}
			if attempt == 0 {
				s.commit(result.Memory) // and nobody lived to tell
			}
		}
	}
}

func TestHistoryOutlivesTheStoresLimit(t *testing.T) {
	s := newStore()
	s.limit = 3 * fullEvery // of messages; there are more executions
	parameters := seen(`"dedupeValue":"={{ $json.id }}"`)
	for i := range 10 * fullEvery {
		if got, _ := s.execute(t, "A", parameters, strconv.Itoa(i), "0"); (got != strconv.Itoa(i) && i > 0) || (i == 0 && got != "0 0") {
			t.Fatalf("execution %d kept %q", i, got)
		}
	}
	for i := range 10 * fullEvery {
		if got, _ := s.execute(t, "A", parameters, strconv.Itoa(i)); got != "" {
			t.Fatalf("%d was forgotten", i)
		}
	}
}

func TestHistorySize(t *testing.T) {
	s := newStore()
	parameters := seen(`"dedupeValue":"={{ $json.id }}","options":{"historySize":3}`)
	for i := range 3 * fullEvery {
		_, result := s.execute(t, "A", parameters, strconv.Itoa(i))
		if hinted := len(result.Hints) == 1; hinted != (i >= 3) {
			t.Errorf("execution %d: hints %v", i, result.Hints)
		}
	}
	last := 3*fullEvery - 1
	if got, _ := s.execute(t, "A", parameters, strconv.Itoa(last), strconv.Itoa(last-1), strconv.Itoa(last-2), strconv.Itoa(last-3)); got != strconv.Itoa(last-3) {
		t.Errorf("kept %s, want the oldest only, %d", got, last-3)
	}
	// More new items than the history holds.
	if got, _ := s.execute(t, "A", parameters, "101", "102", "103", "104", "105"); got != "101 102 103 104 105" {
		t.Errorf("kept %s", got)
	}
	if got, _ := s.execute(t, "A", parameters, "102", "103", "104", "105"); got != "102" {
		t.Errorf("kept %s, want 102", got)
	}
}

func TestExecutionsAtTheSameTime(t *testing.T) {
	// A full note is made from what its run had read. What another run noted
	// meanwhile must not get lost by it.
	s := newStore()
	parameters := seen(`"dedupeValue":"={{ $json.id }}"`)
	for i := range fullEvery - 1 {
		s.execute(t, "A", parameters, strconv.Itoa(i))
	}
	var results []*node.Result
	for _, id := range []string{"100", "200", "300"} {
		before := &store{limit: s.limit, sessions: map[string][]json.RawMessage{}}
		for session, messages := range s.sessions {
			before.sessions[session] = messages
		}
		_, result := before.execute(t, "A", parameters, id)
		results = append(results, result)
	}
	for _, result := range results {
		s.commit(result.Memory)
	}
	for i := range 5 * fullEvery {
		s.execute(t, "A", parameters, strconv.Itoa(1000+i))
	}
	if got, _ := s.execute(t, "A", parameters, "100", "200", "300", "5"); got != "" {
		t.Errorf("%s was forgotten", got)
	}
}

func TestBadInputAcrossExecutions(t *testing.T) {
	for _, test := range []struct{ parameters, want string }{
		{seen(`"dedupeValue":"={{ $json.zzz }}"`), "The value to dedupe on is empty"},
		{seen(`"dedupeValue":" "`), "The value to dedupe on is empty"},
		{seen(`"logic":"removeItemsUpToStoredIncrementalKey","incrementalDedupeValue":"={{ $json.s }}"`), "The value 'abc' is not a number"},
		{seen(`"logic":"removeItemsUpToStoredIncrementalKey","incrementalDedupeValue":true`), "The value 'true' is not a number"},
		{seen(`"logic":"removeItemsUpToStoredDate","dateDedupeValue":"={{ $json.s }}"`), "The value 'abc' is not a valid date"},
		{seen(`"logic":"removeItemsUpToStoredDate","dateDedupeValue":5`), "The value '5' is not a valid date"},
		{seen(`"logic":"other"`), "The value 'other' of 'Keep Items Where' is unknown"},
		{seen(`"dedupeValue":1,"options":{"historySize":0}`), "The history size 0 is too small"},
		{seen(`"dedupeValue":1,"options":{"scope":"all"}`), "The scope 'all' is unknown"},
		{`{"operation":"clearDeduplicationHistory","mode":"deleteSome"}`, "The value 'deleteSome' of 'Mode' is unknown"},
	} {
		call := nodestest.Call(RemoveDuplicates(), test.parameters, nodestest.Items(`{"s":"abc"}`))
		call.LoadMemory = newStore().load
		if _, err := call.Type.Execute(context.Background(), call); err == nil || err.Error() != test.want {
			t.Errorf("%s: got %v, want %s", test.parameters, err, test.want)
		}
	}
	call := nodestest.Call(RemoveDuplicates(), seen(`"dedupeValue":1`), nodestest.Items(`{}`))
	if _, err := call.Type.Execute(context.Background(), call); err == nil || !strings.Contains(err.Error(), "no store") {
		t.Errorf("without a store: got %v", err)
	}
	// A store that fails is no failure of the items, so it is not turned into one.
	call.Node.OnError = workflow.OnErrorContinue
	call.LoadMemory = func(context.Context, string, int) ([]json.RawMessage, error) { return nil, errors.New("away") }
	if _, err := call.Type.Execute(context.Background(), call); err == nil || !strings.Contains(err.Error(), "away") {
		t.Errorf("with a store that fails: got %v", err)
	}
}

func TestOutputsOfRemoveDuplicates(t *testing.T) {
	for parameters, want := range map[string]int{`{}`: 1, seen(`"dedupeValue":1`): 2, `{"operation":"clearDeduplicationHistory"}`: 1} {
		n := &workflow.Node{TypeVersion: 2, Parameters: json.RawMessage(parameters)}
		if got := RemoveDuplicates().OutputCount(n); got != want {
			t.Errorf("%s: got %d, want %d", parameters, got, want)
		}
	}
}

// Ten thousand items through the nodes that look at every field.
func BenchmarkManyItems(b *testing.B) {
	objects := make([]string, 10_000)
	for i := range objects {
		objects[i] = fmt.Sprintf(`{"id":%d,"name":"n%d","v":%d,"more":[1,2,3]}`, i, i%97, i%13)
	}
	items := nodestest.Items(objects...)
	for _, bench := range []struct {
		nodeType   *node.Type
		parameters string
	}{
		{Sort(), `{"sortFieldsUi":{"sortField":[{"fieldName":"name"},{"fieldName":"v","order":"descending"}]}}`},
		{Summarize(), `{"fieldsToSummarize":{"values":[{"aggregation":"sum","field":"v"}]},"fieldsToSplitBy":"name"}`},
		{Summarize(), `{"fieldsToSummarize":{"values":[{"aggregation":"sum","field":"v"}]},"fieldsToSplitBy":"id","options":{"outputFormat":"singleItem"}}`},
		{Aggregate(), `{"aggregate":"aggregateAllItemData"}`},
		{RemoveDuplicates(), `{}`},
		{RenameKeys(), `{"keys":{"key":[{"currentKey":"id","newKey":"x"}]}}`},
	} {
		b.Run(strings.TrimPrefix(bench.nodeType.Type, base), func(b *testing.B) {
			for b.Loop() {
				call := nodestest.Call(bench.nodeType, bench.parameters, items)
				if _, err := call.Type.Execute(context.Background(), call); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
