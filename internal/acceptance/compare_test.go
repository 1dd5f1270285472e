package acceptance

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/tidwall/gjson"
)

// Recorded runs and ours are compared as JSON, not with our own types: what
// those leave out or misname would go unnoticed.

// callID is the id of a tool call, which differs from run to run.
var callID = regexp.MustCompile(`call_[0-9a-f]{8,}(_\d+)?`)

// normal replaces what differs from run to run. Of an error object the text
// counts; where it was thrown and by which library is n8n's own affair.
func normal(v any) any {
	switch v := v.(type) {
	case string:
		return callID.ReplaceAllString(v, "call")
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = normal(v[i])
		}
		return out
	case map[string]any:
		_, isError := v["message"]
		out := make(map[string]any, len(v))
		for key, value := range v {
			if isError && (key == "stack" || key == "name" || key == "code") {
				continue
			}
			out[key] = normal(value)
		}
		return out
	}
	return v
}

// item is what counts of an item.
type item struct {
	JSON   any
	Paired any // a list of [item, input], nil for none
	Binary any
}

func itemsOf(output gjson.Result) []item {
	var items []item
	for _, it := range output.Array() {
		one := item{JSON: normal(it.Get("json").Value()), Paired: paired(it.Get("pairedItem"))}
		if files := it.Get("binary"); files.IsObject() && len(files.Map()) > 0 {
			binary := map[string]any{}
			for name, file := range files.Map() {
				binary[name] = []any{file.Get("mimeType").String(), file.Get("fileName").String(), file.Get("fileExtension").String(), file.Get("data").String()}
			}
			one.Binary = binary
		}
		items = append(items, one)
	}
	return items
}

// paired reads the three forms of pairedItem.
func paired(p gjson.Result) any {
	if !p.Exists() || p.Type == gjson.Null {
		return nil
	}
	list := []gjson.Result{p}
	if p.IsArray() {
		list = p.Array()
	}
	out := [][2]int64{}
	for _, one := range list {
		if one.Type == gjson.Number {
			out = append(out, [2]int64{one.Int(), 0})
			continue
		}
		out = append(out, [2]int64{one.Get("item").Int(), one.Get("input").Int()})
	}
	return out
}

// outputsOf are the items of a record's outputs; absent, null and empty ones at
// the end count as the same.
func outputsOf(data gjson.Result, kind string) [][]item {
	var outputs [][]item
	for _, output := range data.Get(kind).Array() {
		outputs = append(outputs, itemsOf(output))
	}
	for len(outputs) > 0 && len(outputs[len(outputs)-1]) == 0 {
		outputs = outputs[:len(outputs)-1]
	}
	return outputs
}

func sourceOf(record gjson.Result) []string {
	var sources []string
	for _, s := range record.Get("source").Array() {
		if s.Type == gjson.Null {
			sources = append(sources, "none")
			continue
		}
		sources = append(sources, fmt.Sprintf("%s/%d/%d", s.Get("previousNode"), s.Get("previousNodeOutput").Int(), s.Get("previousNodeRun").Int()))
	}
	return sources
}

// messageOf is the text of an error, "" for none.
func messageOf(e gjson.Result) string {
	text := e.Get("message").String()
	if e.Type == gjson.String {
		text = e.Str
	}
	return strings.Join(strings.Fields(callID.ReplaceAllString(text, "call")), " ")
}

// notOnTheStack are the kinds of sub-nodes that the engine does not run: what they
// log, and when, is not compared.
var notOnTheStack = []string{
	"ai_languageModel", "ai_memory", "ai_embedding", "ai_vectorStore", "ai_document", "ai_textSplitter", "ai_retriever",
}

func isSubNode(record gjson.Result) bool {
	for _, kind := range notOnTheStack {
		if record.Get("data."+kind).Exists() || record.Get("inputOverride."+kind).Exists() {
			return true
		}
	}
	return false
}

// runDataOf are the records by node. Names are read as keys, since they may hold
// dots.
func runDataOf(run gjson.Result) map[string][]gjson.Result {
	out := map[string][]gjson.Result{}
	for name, records := range run.Get("data.resultData.runData").Map() {
		out[name] = records.Array()
	}
	return out
}

// resumedIn are the nodes that asked for tools: n8n gives their record the
// place of its end, and a source of its own.
func resumedIn(runData map[string][]gjson.Result) map[string]bool {
	out := map[string]bool{}
	for name, records := range runData {
		for _, r := range records {
			if r.Get("metadata.nodeWasResumed").Bool() {
				out[name] = true
			}
		}
	}
	return out
}

// orderOf are the records in the order they ran, of nodes that both runs have.
func orderOf(runData, other map[string][]gjson.Result, resumed map[string]bool) []string {
	type place struct {
		at   int64
		name string
	}
	var places []place
	for name, records := range runData {
		if resumed[name] || other[name] == nil {
			continue
		}
		for i, r := range records {
			if !isSubNode(r) {
				places = append(places, place{r.Get("executionIndex").Int(), fmt.Sprintf("%s#%d", name, i)})
			}
		}
	}
	sort.Slice(places, func(i, j int) bool { return places[i].at < places[j].at })
	order := make([]string, len(places))
	for i, p := range places {
		order[i] = p.name
	}
	return order
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}

// differences says where the run got differs from the recorded one.
func differences(want, got gjson.Result) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	wantError, gotError := messageOf(want.Get("data.resultData.error")), messageOf(got.Get("data.resultData.error"))
	if w, g := want.Get("status").Str, got.Get("status").Str; w != g {
		say("status: want %s, got %s (%s)", w, g, gotError)
	}
	if wantError != gotError {
		say("error: want %q, got %q", wantError, gotError)
	}
	wantData, gotData := runDataOf(want), runDataOf(got)
	for name := range wantData {
		if gotData[name] == nil {
			say("%s: did not run", name)
		}
	}
	for name := range gotData {
		if wantData[name] == nil {
			say("%s: ran, but should not have", name)
		}
	}
	resumed := resumedIn(wantData)
	wantOrder, gotOrder := orderOf(wantData, gotData, resumed), orderOf(gotData, wantData, resumed)
	if slices.Equal(sorted(wantOrder), sorted(gotOrder)) && !slices.Equal(wantOrder, gotOrder) {
		say("order of records: want %v, got %v", wantOrder, gotOrder)
	}
	for name, records := range wantData {
		if gotData[name] == nil {
			continue
		}
		if len(records) != len(gotData[name]) {
			say("%s: want %d runs, got %d", name, len(records), len(gotData[name]))
			continue
		}
		for i, w := range records {
			out = append(out, recordDifferences(fmt.Sprintf("%s#%d", name, i), w, gotData[name][i], resumed[name])...)
		}
	}
	slices.Sort(out)
	return out
}

func recordDifferences(at string, want, got gjson.Result, resumed bool) []string {
	var out []string
	compare := func(what string, w, g any) {
		if !reflect.DeepEqual(w, g) {
			out = append(out, fmt.Sprintf("%s %s:\n    want %s\n    got  %s", at, what, show(w), show(g)))
		}
	}
	compare("status", want.Get("executionStatus").Str, got.Get("executionStatus").Str)
	compare("error", messageOf(want.Get("error")), messageOf(got.Get("error")))
	if !isSubNode(want) && !resumed {
		compare("source", sourceOf(want), sourceOf(got))
	}
	if arguments := want.Get("inputOverride.ai_tool"); arguments.Exists() {
		compare("arguments", argumentsOf(arguments), argumentsOf(got.Get("inputOverride.ai_tool")))
	}
	for _, kind := range []string{"main", "ai_tool", "ai_outputParser"} {
		compare(kind, outputsOf(want.Get("data"), kind), outputsOf(got.Get("data"), kind))
	}
	return out
}

func argumentsOf(override gjson.Result) []any {
	var out []any
	for _, output := range override.Array() {
		for _, it := range output.Array() {
			out = append(out, normal(it.Get("json").Value()))
		}
	}
	return out
}

func show(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%v", v)
	}
	if len(text) > 900 {
		return string(text[:900]) + "…"
	}
	return string(text)
}
