package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-engine/reprise/internal/nodetypes"
	"github.com/reprise-engine/reprise/internal/preview"
	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

type evalOptions struct {
	json, file, timezone    string
	workflow, node, runData string
	input                   string
	item, run               int
	check                   bool
	output                  output
}

func evalCommand() *cobra.Command {
	o := evalOptions{output: outputText}
	cmd := &cobra.Command{
		Use: "eval EXPRESSION", Short: "Evaluate an n8n expression and print its value.",
		Long: `Evaluate an expression, such as '{{ $json.name.toUpperCase() }}', and print its value.

It sees the item of --json, or what a node of a workflow gets (--workflow, --node): the nodes
before it are run here as far as they touch nothing outside; what calls others (HTTP, mail,
models) needs pinned data, or the run data of an earlier run. $env, $vars and credentials are
not there.

With --file, every line is a case: {"expr": "={{ … }}"} with the members "id", "json" or
"items", "item", "timezone", "workflow", "node", "runData" and "run" as it needs them; the
answer is a line of JSON for each. Errors that n8n swallows give undefined, with a hint here.

Exit codes: 0 it has a value, 1 an expression failed (or, with --check, differs from what its
line says), 2 wrong usage, or a workflow that does not lead to the node.`,
		Example: `  reprise eval '{{ $json.name.toUpperCase() }}' --json '{"name":"Ada"}'
  reprise eval '{{ $now.minus(1, "day").toISODate() }}' --timezone Europe/Berlin
  reprise eval '{{ $("Orders").item.json.id }}' --workflow flow.json --node Mail --item 2
  reprise run flow.json --output json > run.json
  reprise eval '{{ $json.total }}' --workflow flow.json --node Mail --run-data run.json
  reprise eval --file cases.jsonl`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case o.file != "" && len(args) > 0:
				return errors.New("give an expression or --file, not both")
			case o.file == "" && len(args) != 1:
				return errors.New(`give one expression, in quotes: reprise eval '{{ $json.name }}' --json '{"name":"Ada"}'`)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.output.set(outputText, outputJSON); err != nil {
				return err
			}
			if o.file != "" {
				return o.evalFile(cmd)
			}
			return o.evalOne(cmd, args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.json, "json", "", "the input: the JSON of an item, or a list of them; @FILE reads it, - is standard input")
	f.IntVar(&o.item, "item", 0, "index of the item that $json is")
	f.StringVar(&o.timezone, "timezone", "", "IANA time zone of $now and dates (default: the workflow's, else UTC)")
	f.StringVar(&o.workflow, "workflow", "", "workflow file whose nodes $('…') means")
	f.StringVar(&o.node, "node", "", "with --workflow: name of the node whose input is seen")
	f.StringVar(&o.runData, "run-data", "", "with --workflow: run data of an earlier run (reprise run --output json)")
	f.IntVar(&o.run, "run", -1, "with --run-data: which run of the node, from 0 (default: the last)")
	f.StringVar(&o.input, "input", "", "with --workflow: what its trigger gives: JSON, or @FILE")
	f.StringVar(&o.file, "file", "", "JSON lines with a case each; - is standard input")
	f.BoolVar(&o.check, "check", false, `with --file: compare with "result", "type" and "error" in the lines, print what differs`)
	f.StringVar((*string)(&o.output), "output", string(outputText), "text (the bare value) or json (with its type)")
	return cmd
}

func (o *evalOptions) evalOne(cmd *cobra.Command, text string) error {
	if !strings.HasPrefix(text, "=") {
		text = "=" + text // as n8n's editor adds it
	}
	if !strings.Contains(text, "{{") {
		warner(cmd)("there is no {{ }} in it, so it is a plain text; write '{{ " + strings.TrimPrefix(text, "=") + " }}' for its value")
	}
	c := evalCase{
		Expr: text, Item: o.item, Timezone: o.timezone,
		Workflow: o.workflow, Node: o.node, RunData: o.runData, input: o.input,
	}
	if o.run >= 0 {
		c.Run = &o.run
	}
	if o.json != "" {
		given, err := readValue("--json", o.json, cmd.InOrStdin())
		if err != nil {
			return err
		}
		if given[0] == '[' {
			c.Items = given
		} else {
			c.JSON = given
		}
	}
	if strings.LastIndex(text, "{{") > strings.LastIndex(text, "}}") {
		warner(cmd)("a {{ is not closed by }}; what follows it is taken for code, as in n8n")
	}
	e, err := newEvaluation()
	if err != nil {
		return err
	}
	defer e.close()
	scope, err := e.scope(cmd.Context(), &c)
	if err != nil {
		return err
	}
	value, err := e.evaluator.Evaluate(cmd.Context(), scope, c.Item, c.Expr)
	if failed := (*expression.Error)(nil); errors.As(err, &failed) {
		if o.output == outputJSON {
			if err := writeLine(cmd.OutOrStdout(), answerOf(c.ID, value, failed)); err != nil {
				return err
			}
		}
		return &exitError{service.ExitFailed, expressionFailed(failed, scope, text)}
	}
	if err != nil {
		return err
	}
	for _, hint := range e.hints(cmd.Context(), scope, c.Item, text) {
		fmt.Fprintln(cmd.ErrOrStderr(), styleFor(cmd.ErrOrStderr()).yellow("hint:"), hint)
	}
	if o.output == outputJSON {
		return writeLine(cmd.OutOrStdout(), answerOf(c.ID, value, nil))
	}
	fmt.Fprintln(cmd.OutOrStdout(), valueText(value))
	return nil
}

// readValue reads a flag's JSON: itself, @FILE or standard input.
func readValue(flag, given string, stdin io.Reader) (json.RawMessage, error) {
	data := []byte(given)
	var err error
	if file, ok := strings.CutPrefix(given, "@"); ok {
		data, err = os.ReadFile(file)
	} else if given == "-" {
		data, err = io.ReadAll(stdin)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	data = []byte(strings.TrimSpace(string(data)))
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, fmt.Errorf("%s must be a JSON object, or a list of them: %w", flag, err)
	}
	return data, nil
}

// valueText is a value for people: a text bare, anything else as JSON.
func valueText(v expression.Value) string {
	if v.Kind != "" {
		return v.Kind
	}
	var text string
	if json.Unmarshal(v.JSON, &text) == nil && len(v.JSON) > 0 && v.JSON[0] == '"' {
		return text
	}
	return string(indented(v.JSON))
}

// evaluation evaluates cases and keeps what several of them share.
type evaluation struct {
	evaluator *expression.Evaluator
	now       time.Time
	previews  map[previewKey]*preview.Data
	failures  map[previewKey]error
	workflows map[string]*workflow.Workflow
	runData   map[string]map[string][]*engine.Record
}

type previewKey struct {
	workflow, node, runData, input string
	run                            int
}

func newEvaluation() (*evaluation, error) {
	evaluator, err := expression.New()
	if err != nil {
		return nil, fmt.Errorf("start the JavaScript engine: %w", err)
	}
	return &evaluation{
		evaluator: evaluator, now: time.Now(), previews: map[previewKey]*preview.Data{}, failures: map[previewKey]error{},
		workflows: map[string]*workflow.Workflow{}, runData: map[string]map[string][]*engine.Record{},
	}, nil
}

func (e *evaluation) close() { _ = e.evaluator.Close() }

// scope is what a case's expression sees.
func (e *evaluation) scope(ctx context.Context, c *evalCase) (*expression.Scope, error) {
	if c.Timezone != "" {
		if _, err := time.LoadLocation(c.Timezone); err != nil {
			return nil, fmt.Errorf("timezone %q: want a name such as Europe/Berlin", c.Timezone)
		}
	}
	given, err := c.given()
	if err != nil {
		return nil, err
	}
	var scope *expression.Scope
	switch {
	case c.Workflow == "" && (c.Node != "" || c.RunData != "" || c.input != ""):
		return nil, errors.New("--node, --run-data and --input need --workflow FILE")
	case c.Workflow == "":
		if given == nil {
			given = workflow.Items{{JSON: []byte("{}"), PairedItem: workflow.Paired(0)}}
		}
		scope = preview.Alone(given, c.Timezone, e.now)
	default:
		data, err := e.preview(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Workflow, err)
		}
		scope = data.Scope(e.now)
		if c.Timezone != "" {
			scope.Timezone = c.Timezone
		}
		if given != nil {
			scope.Inputs = []workflow.Items{given}
		}
	}
	items := 0
	if len(scope.Inputs) > 0 {
		items = len(scope.Inputs[0])
	}
	if c.Item < 0 || c.Item > 0 && c.Item >= items {
		return nil, fmt.Errorf("item %d: the input has %d items, counted from 0", c.Item, items)
	}
	return scope, nil
}

// preview finds out what the node of a case is given, once for all cases that ask it.
func (e *evaluation) preview(ctx context.Context, c *evalCase) (*preview.Data, error) {
	if c.Node == "" {
		return nil, errors.New("name the node whose input the expression sees, with --node")
	}
	key := previewKey{c.Workflow, c.Node, c.RunData, c.input, -1}
	if c.Run != nil {
		key.run = *c.Run
	}
	if data := e.previews[key]; data != nil {
		return data, nil
	}
	if err := e.failures[key]; err != nil {
		return nil, err
	}
	data, err := e.look(ctx, key)
	e.previews[key], e.failures[key] = data, err
	return data, err
}

func (e *evaluation) look(ctx context.Context, key previewKey) (*preview.Data, error) {
	w := e.workflows[key.workflow]
	if w == nil {
		data, err := os.ReadFile(key.workflow)
		if err != nil {
			return nil, fmt.Errorf("read workflow: %w", err)
		}
		if w, err = workflow.Parse(data); err != nil {
			return nil, err
		}
		e.workflows[key.workflow] = w
	}
	if key.runData != "" {
		records := e.runData[key.runData]
		if records == nil {
			var err error
			if records, err = readRunData("--run-data", key.runData); err != nil {
				return nil, err
			}
			e.runData[key.runData] = records
		}
		return preview.FromRunData(w, key.node, key.run, records)
	}
	if key.run > 0 {
		return nil, errors.New("--run needs --run-data: here a workflow is followed up to the first run of the node")
	}
	input, err := readInput(key.input)
	if err != nil {
		return nil, err
	}
	return preview.Up(ctx, w, key.node, preview.Config{Registry: nodetypes.Registry(), Evaluator: e.evaluator, Input: input})
}
