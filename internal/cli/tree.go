package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// run is one record of the run data with where it belongs.
type run struct {
	node     string
	index    int
	record   *engine.Record
	kind     string // connection type its output is logged under
	children []*run
}

// runTree arranges run data as people think of it: the main flow in the order
// it ran, below an Agent its model, memory and tool calls.
func runTree(runData map[string][]*engine.Record) []*run {
	byRef := map[engine.RunRef]*run{}
	var all []*run
	for name, records := range runData {
		for i, record := range records {
			if record == nil {
				continue
			}
			r := &run{node: name, index: i, record: record, kind: recordKind(record)}
			byRef[engine.RunRef{Node: name, Run: i}] = r
			all = append(all, r)
		}
	}
	sort.Slice(all, func(i, j int) bool {
		a, b := all[i], all[j]
		if a.record.ExecutionIndex != b.record.ExecutionIndex {
			return a.record.ExecutionIndex < b.record.ExecutionIndex
		}
		if a.node != b.node {
			return a.node < b.node
		}
		return a.index < b.index
	})
	var roots []*run
	for _, r := range all {
		if parent := r.parent(byRef); parent != nil {
			parent.children = append(parent.children, r)
		} else {
			roots = append(roots, r)
		}
	}
	return roots
}

// parent is the run that used this one, nil for a run of the main flow.
func (r *run) parent(byRef map[engine.RunRef]*run) *run {
	if r.kind == workflow.Main || len(r.record.Source) == 0 || r.record.Source[0] == nil {
		return nil
	}
	source := r.record.Source[0]
	parent := byRef[engine.RunRef{Node: source.PreviousNode, Run: source.PreviousNodeRun}]
	if parent == r {
		return nil
	}
	return parent
}

func recordKind(record *engine.Record) string {
	for _, data := range []map[string][]workflow.Items{record.Data, record.InputOverride} {
		for kind := range data {
			if kind != workflow.Main {
				return kind
			}
		}
	}
	return workflow.Main
}

// treePrinter draws a tree of runs.
type treePrinter struct {
	out   io.Writer
	style style
	width int // of a line's text, before the duration
	// waiting are the waits of the execution by token.
	waiting map[string]*queue.Waiting
}

func (p *treePrinter) print(runs []*run) { p.level(runs, "") }

func (p *treePrinter) level(runs []*run, indent string) {
	for i, r := range runs {
		branch, below := "├─ ", "│  "
		if i == len(runs)-1 {
			branch, below = "└─ ", "   "
		}
		p.line(r, indent+branch)
		p.details(r, indent+below)
		p.level(r.children, indent+below)
	}
}

func (p *treePrinter) line(r *run, prefix string) {
	name := r.node
	if r.index > 0 {
		name += fmt.Sprintf(" #%d", r.index+1)
	}
	if r.record.Attempts > 1 {
		name += fmt.Sprintf(" (%d attempts)", r.record.Attempts)
	}
	duration := "…"
	if r.record.Status.Finished() {
		duration = (time.Duration(r.record.ExecutionTime) * time.Millisecond).String()
	}
	pad := max(1, p.width-utf8.RuneCountInString(prefix+name)-2)
	fmt.Fprintf(p.out, "%s%s %s%s%s\n", p.style.dim(prefix), p.mark(r.record.Status), p.style.bold(name),
		strings.Repeat(" ", pad), p.style.dim(duration))
}

func (p *treePrinter) mark(s engine.Status) string {
	switch s {
	case engine.StatusSuccess:
		return p.style.green("✓")
	case engine.StatusError:
		return p.style.red("✗")
	case engine.StatusCanceled:
		return p.style.yellow("■")
	}
	return p.style.yellow("…")
}

// details shows what a call was asked and what it answered.
func (p *treePrinter) details(r *run, indent string) {
	say := func(label, text string) {
		if text != "" {
			fmt.Fprintf(p.out, "%s%s %s\n", p.style.dim(indent+"  "), p.style.dim(label), text)
		}
	}
	switch r.kind {
	case workflow.Tool:
		say("asked   ", askedText(r.record))
		decided := r.record.Metadata != nil && r.record.Metadata.Outcome != "" // is said below
		if r.record.Error == nil && r.record.Status != engine.StatusWaiting && !decided {
			say("answered", firstJSON(r.record.Data[workflow.Tool]))
		}
	case workflow.LanguageModel:
		say("said    ", modelText(r.record))
	}
	p.meta(r.record, say)
	if r.record.Error != nil {
		text := r.record.Error.Message
		if r.record.Error.Reason != "" {
			text += " [" + string(r.record.Error.Reason) + "]"
		}
		say("failed  ", p.style.red(shorten(text, 160)))
	}
	for _, line := range r.record.Logs {
		say("logged  ", shorten(line, 160))
	}
}

// meta shows what a run waits or waited for, and the executions it started.
func (p *treePrinter) meta(record *engine.Record, say func(label, text string)) {
	m := record.Metadata
	if m == nil {
		return
	}
	if w := p.waiting[m.Wait]; w != nil && record.Status == engine.StatusWaiting {
		text := kindText(w)
		if w.Until > 0 {
			text += " until " + clock(w.Until)
		}
		say("waits   ", p.style.yellow(text+"  "+w.Token))
	}
	if m.Outcome != "" {
		say("decided ", decisionText(m.Outcome, m.Decision, false))
	}
	say("started ", startedText(record))
}

// shownChildren is how many executions that a run started are named.
const shownChildren = 2

// startedText names the executions that a run started: the record names one, the
// items that came from several name theirs.
func startedText(record *engine.Record) string {
	var ids []string
	if m := record.Metadata; m.SubExecution != nil {
		ids = []string{string(m.SubExecution.ExecutionID)}
	}
	for _, outputs := range record.Data {
		for _, items := range outputs {
			for _, item := range items {
				var link struct {
					SubExecution engine.ExecutionRef `json:"subExecution"`
				}
				if len(item.Metadata) == 0 || json.Unmarshal(item.Metadata, &link) != nil {
					continue
				}
				if id := string(link.SubExecution.ExecutionID); id != "" && !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
			}
		}
	}
	count := max(record.Metadata.SubExecutionsCount, len(ids))
	switch {
	case count == 0:
		return ""
	case len(ids) == 0:
		return fmt.Sprintf("%d executions", count)
	}
	named := ids[:min(len(ids), shownChildren)]
	text := "execution " + strings.Join(named, ", ")
	if more := count - len(named); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// askedText is what a tool was asked; of a gate, the call that it guards.
func askedText(record *engine.Record) string {
	input := record.InputOverride[workflow.Tool]
	if len(input) > 0 && len(input[0]) == 1 {
		var gated struct {
			Tool       string          `json:"tool"`
			Parameters json.RawMessage `json:"toolParameters"`
		}
		if json.Unmarshal(input[0][0].JSON, &gated) == nil && gated.Tool != "" && len(gated.Parameters) > 0 {
			return shorten(gated.Tool+" "+string(gated.Parameters), 160)
		}
	}
	return firstJSON(input)
}

func firstJSON(outputs []workflow.Items) string {
	if len(outputs) == 0 || len(outputs[0]) == 0 {
		return ""
	}
	text := string(outputs[0][0].JSON)
	if more := len(outputs[0]) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return shorten(text, 160)
}

// modelText is the text a model answered; "" when it only called tools.
func modelText(record *engine.Record) string {
	outputs := record.Data[workflow.LanguageModel]
	if len(outputs) == 0 || len(outputs[0]) == 0 {
		return ""
	}
	var answer struct {
		Response struct {
			Generations [][]struct {
				Text string `json:"text"`
			} `json:"generations"`
		} `json:"response"`
	}
	if json.Unmarshal(outputs[0][0].JSON, &answer) != nil {
		return ""
	}
	for _, generation := range answer.Response.Generations {
		for _, g := range generation {
			if g.Text != "" {
				return shorten(g.Text, 160)
			}
		}
	}
	return ""
}

// shorten cuts a text to n characters on one line.
func shorten(text string, n int) string {
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

// answerText is what the last node said: the "output" of its first item, or the item.
func answerText(runData map[string][]*engine.Record, last string) string {
	records := runData[last]
	if len(records) == 0 || records[len(records)-1] == nil {
		return ""
	}
	for _, items := range records[len(records)-1].Data[workflow.Main] {
		if len(items) == 0 {
			continue
		}
		var output struct {
			Output *json.RawMessage `json:"output"`
		}
		if json.Unmarshal(items[0].JSON, &output) == nil && output.Output != nil {
			var text string
			if json.Unmarshal(*output.Output, &text) == nil {
				return text
			}
			return string(*output.Output)
		}
		return string(items[0].JSON)
	}
	return ""
}
