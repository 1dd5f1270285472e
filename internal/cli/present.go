package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// presenter shows a run in the form that was asked for: progress while it
// lasts, the result at its end.
type presenter struct {
	out, progress io.Writer
	style         style
	output        output
	nameWidth     int

	mu       sync.Mutex
	finished []string // nodes in the order of their first end
	held     bool     // a question is on the terminal
}

func newPresenter(cmd *cobra.Command, o output, nodes []*workflow.Node) *presenter {
	p := &presenter{out: cmd.OutOrStdout(), style: styleFor(cmd.OutOrStdout()), output: o}
	if o == outputSummary && isTerminal(cmd.ErrOrStderr()) {
		p.progress = cmd.ErrOrStderr()
	}
	for _, n := range nodes {
		p.nameWidth = max(p.nameWidth, utf8.RuneCountInString(n.Name))
	}
	return p
}

// live shows one notice.
func (p *presenter) live(l engine.Live) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.Kind == engine.LiveNodeFinished && l.Status.Finished() {
		p.note(l.Node)
	}
	switch {
	case p.output == outputTrace:
		if line := p.traceLine(l); line != "" {
			fmt.Fprintln(p.out, line)
		}
	case p.progress == nil || p.held:
	case l.Kind == engine.LiveNodeStarted:
		fmt.Fprintf(p.progress, "\r\x1b[K%s", p.style.dim("running "+l.Node))
	case l.Kind == engine.LiveExecutionFinished:
		fmt.Fprint(p.progress, "\r\x1b[K")
	}
}

// traceLine is a notice in the trace; a run that is parked has no output yet.
func (p *presenter) traceLine(l engine.Live) string {
	if l.Kind == engine.LiveNodeFinished && l.Status == engine.StatusWaiting {
		l.Type = ""
		return strings.Replace(strings.Replace(engine.FormatTrace(l, p.nameWidth), "✓", "…", 1), "output as", "waits    ", 1)
	}
	return engine.FormatTrace(l, p.nameWidth)
}

// hold stops the progress while a question is on the terminal.
func (p *presenter) hold(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = on
}

func (p *presenter) note(name string) {
	for _, known := range p.finished {
		if known == name {
			return
		}
	}
	p.finished = append(p.finished, name)
}

// finish prints the result; its error carries the exit code.
func (p *presenter) finish(x *queue.Execution) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	data, err := runDataOf(x)
	if err != nil {
		return err
	}
	switch p.output {
	case outputJSON:
		if err := printJSON(p.out, x); err != nil {
			return err
		}
	case outputTrace:
		p.traceEnd(x, data)
	default:
		printExecution(p.out, p.style, x, data)
	}
	switch x.Status {
	case engine.StatusSuccess:
		return nil
	case engine.StatusWaiting:
		return &exitError{code: service.ExitWaiting}
	}
	return &exitError{code: service.ExitFailed}
}

// traceEnd prints what follows the trace's steps: the answer, and how often each node ran.
func (p *presenter) traceEnd(x *queue.Execution, data *runExecutionData) {
	fmt.Fprintln(p.out)
	switch {
	case data.ResultData.Error != nil:
		fmt.Fprintln(p.out, "error :", data.ResultData.Error.Message)
	case x.Status == engine.StatusWaiting:
		for i := range x.Waiting {
			fmt.Fprintln(p.out, "waits :", waitingText(&x.Waiting[i]))
		}
	default:
		fmt.Fprintln(p.out, "answer:", answerText(data.ResultData.RunData, data.ResultData.LastNodeExecuted))
	}
	counts := make([]string, 0, len(p.finished))
	for _, name := range p.finished {
		counts = append(counts, fmt.Sprintf("%s=%d", name, len(data.ResultData.RunData[name])))
	}
	fmt.Fprintln(p.out, "runs  :", strings.Join(counts, " "))
}

// runExecutionData is the part of n8n's run shape that is shown.
type runExecutionData struct {
	ResultData struct {
		RunData          map[string][]*engine.Record `json:"runData"`
		LastNodeExecuted string                      `json:"lastNodeExecuted"`
		Error            *engine.NodeError           `json:"error"`
	} `json:"resultData"`
}

func runDataOf(x *queue.Execution) (*runExecutionData, error) {
	var data runExecutionData
	if err := json.Unmarshal(x.Data, &data); err != nil {
		return nil, fmt.Errorf("execution %s: unreadable run data: %w", x.ID, err)
	}
	return &data, nil
}

// treeWidth is the width of the tree's text before the durations.
const treeWidth = 64

// printExecution draws an execution for people.
func printExecution(out io.Writer, s style, x *queue.Execution, data *runExecutionData) {
	printHeader(out, s, x)
	waiting := map[string]*queue.Waiting{}
	for i := range x.Waiting {
		waiting[x.Waiting[i].Token] = &x.Waiting[i]
	}
	(&treePrinter{out: out, style: s, width: treeWidth, waiting: waiting}).print(runTree(data.ResultData.RunData))
	if len(x.Waiting) > 0 {
		fmt.Fprintln(out)
	}
	for i := range x.Waiting {
		wait := &x.Waiting[i]
		text := s.yellow(waitingText(wait))
		if hint := waitingHint(x, wait); hint != "" {
			text += s.dim("  " + hint)
		}
		fmt.Fprintln(out, text)
	}
	if e := data.ResultData.Error; e != nil {
		where := ""
		if e.Node != "" {
			where = " in " + e.Node
		}
		fmt.Fprintf(out, "\n%s%s: %s\n", s.red("failed"), where, e.Message)
		if e.Description != "" {
			fmt.Fprintln(out, s.dim(e.Description))
		}
	} else if answer := answerText(data.ResultData.RunData, data.ResultData.LastNodeExecuted); answer != "" && x.Status != engine.StatusWaiting {
		fmt.Fprintf(out, "\n%s\n", answer)
	}
}

// printHeader says what an execution is, how it stands and where it comes from.
func printHeader(out io.Writer, s style, x *queue.Execution) {
	name := x.WorkflowName
	if name == "" {
		name = "(unnamed workflow)"
	}
	state := string(x.Status)
	switch x.Status {
	case engine.StatusSuccess:
		state = s.green(state)
	case engine.StatusError, engine.StatusCanceled:
		state = s.red(state)
	default:
		state = s.yellow(state)
	}
	fmt.Fprintf(out, "%s  %s", s.bold(name), state)
	if x.StoppedAt > 0 && x.StartedAt > 0 {
		fmt.Fprintf(out, "  %s", s.dim((time.Duration(x.StoppedAt-x.StartedAt) * time.Millisecond).String()))
	}
	fmt.Fprintf(out, "  %s\n", s.dim(string(x.ID)))
	if x.Parent != "" {
		fmt.Fprintln(out, s.dim("started by execution "+string(x.Parent)))
	}
	if x.RetryOf != "" {
		fmt.Fprintln(out, s.dim("retry of execution "+string(x.RetryOf)))
	}
	if x.QueuePosition > 0 {
		fmt.Fprintln(out, s.dim(fmt.Sprintf("waits for its turn, as number %d: its workflow has as many unfinished executions as it may have", x.QueuePosition)))
	}
}

// printJSON prints a value as indented JSON.
func printJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
