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
}

func newPresenter(cmd *cobra.Command, o output, w *workflow.Workflow) *presenter {
	p := &presenter{out: cmd.OutOrStdout(), style: styleFor(cmd.OutOrStdout()), output: o}
	if o == outputSummary && isTerminal(cmd.ErrOrStderr()) {
		p.progress = cmd.ErrOrStderr()
	}
	for _, n := range w.Nodes {
		p.nameWidth = max(p.nameWidth, utf8.RuneCountInString(n.Name))
	}
	return p
}

// live shows one notice.
func (p *presenter) live(l engine.Live) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.Kind == engine.LiveNodeFinished {
		p.note(l.Node)
	}
	switch {
	case p.output == outputTrace:
		if line := engine.FormatTrace(l, p.nameWidth); line != "" {
			fmt.Fprintln(p.out, line)
		}
	case p.progress != nil && l.Kind == engine.LiveNodeStarted:
		fmt.Fprintf(p.progress, "\r\x1b[K%s", p.style.dim("running "+l.Node))
	case p.progress != nil && l.Kind == engine.LiveExecutionFinished:
		fmt.Fprint(p.progress, "\r\x1b[K")
	}
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
	if data.ResultData.Error != nil {
		fmt.Fprintln(p.out, "error :", data.ResultData.Error.Message)
	} else {
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
	if x.StoppedAt > 0 {
		fmt.Fprintf(out, "  %s", s.dim((time.Duration(x.StoppedAt-x.StartedAt) * time.Millisecond).String()))
	}
	fmt.Fprintf(out, "  %s\n", s.dim(string(x.ID)))
	(&treePrinter{out: out, style: s, width: treeWidth}).print(runTree(data.ResultData.RunData))
	if e := data.ResultData.Error; e != nil {
		where := ""
		if e.Node != "" {
			where = " in " + e.Node
		}
		fmt.Fprintf(out, "\n%s%s: %s\n", s.red("failed"), where, e.Message)
		if e.Description != "" {
			fmt.Fprintln(out, s.dim(e.Description))
		}
	} else if answer := answerText(data.ResultData.RunData, data.ResultData.LastNodeExecuted); answer != "" {
		fmt.Fprintf(out, "\n%s\n", answer)
	}
}

// printJSON prints a value as indented JSON.
func printJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
