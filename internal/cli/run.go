package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/mockllm"
	"github.com/reprise-engine/reprise/internal/nodetypes"
	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/internal/stack"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// output is the value of an --output flag.
type output string

const (
	outputSummary output = "summary"
	outputJSON    output = "json"
	outputTrace   output = "trace"
	outputText    output = "text"
)

func (o *output) set(allowed ...output) error {
	for _, a := range allowed {
		if *o == a {
			return nil
		}
	}
	names := make([]string, len(allowed))
	for i, a := range allowed {
		names[i] = string(a)
	}
	return fmt.Errorf("--output %q: use %s", string(*o), strings.Join(names, ", "))
}

type runOptions struct {
	servers
	file, input, start    string
	output                output
	trace                 bool
	script, credentials   string
	workers, coordinators int
	logLevel              string
	workflows             string
	to, reuse             string
	exclusive             bool
	http                  string
	timeout               time.Duration
}

func runCommand() *cobra.Command {
	o := runOptions{output: outputSummary}
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Run a workflow file and print what came out.",
		Long: `Run a workflow file in this process, on an embedded NATS and Redis (or on the servers that
--nats and --redis name), and print the result. FILE may be "-" for standard input.

When the workflow waits: a moment is waited for; a question is asked here, when standard input and
error are a terminal; with --http, questions and webhooks are answered under the URLs that are
printed. What nobody here can answer ends the run with exit code 3. "reprise dev" keeps
executions that wait.`,
		Example: `  reprise run examples/agent-parallel-tools.json
  reprise run --trace examples/agent-stack-trace.json
  reprise run examples/approval.json
  reprise run flow.json --input '{"chatInput":"hello"}' --output json
  reprise run flow.json --credentials credentials.json --workflows flows/
  reprise run examples/wait-webhook.json --http 127.0.0.1:8484
  reprise run flow.json --to Summary --reuse earlier-output.json`,
		Args: exactFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.file = args[0]
			return o.run(cmd)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.input, "input", "", "the start node's one item: JSON, or @FILE")
	f.StringVar(&o.start, "start", "", "name of the node to start from (default: the workflow's trigger)")
	f.StringVar((*string)(&o.output), "output", string(outputSummary), "summary, json (n8n's run data) or trace")
	f.BoolVar(&o.trace, "trace", false, "the same as --output trace: every step with the stack")
	f.StringVar(&o.to, "to", "", "name of the node to run up to; pinned data is used")
	f.BoolVar(&o.exclusive, "exclusive", false, "with --to: leave that node itself out")
	f.StringVar(&o.reuse, "reuse", "", "with --to: output of an earlier run (--output json) whose data is taken instead of running its nodes again")
	f.StringVar(&o.http, "http", "", "address to answer questions and webhooks at, such as 127.0.0.1:8484 (default: off)")
	f.DurationVar(&o.timeout, "timeout", 0, "cancel the execution after this time (default: never)")
	o.stackFlags(cmd)
	return cmd
}

// stackFlags adds the flags of what runs a workflow.
func (o *runOptions) stackFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.script, "mock-llm", "", "script of a mock LLM that all OpenAI credentials lead to")
	f.StringVar(&o.credentials, "credentials", os.Getenv("REPRISE_CREDENTIALS_FILE"), "credentials in the format of n8n's decrypted export")
	f.StringVar(&o.workflows, "workflows", "", "directory of workflows that this one may call, each by the id in it, else by its file name")
	f.IntVar(&o.workers, "workers", 1, "workers to start")
	f.IntVar(&o.coordinators, "coordinators", 1, "coordinators to start")
	f.StringVar(&o.logLevel, "log-level", "error", "debug, info, warn or error, on stderr")
	o.natsFlag(cmd, "", "NATS server to use instead of an embedded one")
	o.redisFlag(cmd, "Redis server to use instead of an embedded one")
}

// startFor starts what runs a workflow, as the flags and the environment say, with the workflows that it
// may call. Nothing is started for one that cannot run from that start.
func (o *runOptions) startFor(cmd *cobra.Command, w *workflow.Workflow, start string, log *zap.Logger) (_ *stack.Stack, docs []document, err error) {
	if docs, err = readWorkflowDir(o.workflows, log); err != nil {
		return nil, nil, err
	}
	warn := warner(cmd)
	problems := workflow.ValidateStart(w, nodetypes.Registry(), start)
	if err := problems.Err(); err != nil {
		return nil, nil, fmt.Errorf("%s cannot run:\n%w", o.file, err)
	}
	for _, warning := range problems.Warnings() {
		warn(warning.String())
	}
	config := stack.Config{
		NATSURL: o.nats, RedisURL: o.redis, Workers: o.workers, Coordinators: o.coordinators, HTTPAddr: o.http,
		CredentialsFile: o.credentials, MockLLM: usesMock(w, docs...), Log: log,
	}
	if config.Code, err = service.CodeSettings(); err != nil {
		return nil, nil, err
	}
	if config.Disk, err = service.DiskSettings(); err != nil {
		return nil, nil, err
	}
	if o.script != "" {
		if config.Script, err = readScript(o.script); err != nil {
			return nil, nil, err
		}
	}
	s, err := stack.Start(cmd.Context(), config)
	if err != nil {
		return nil, nil, err
	}
	if err := putDocuments(cmd.Context(), s.Conn, docs, warn); err != nil {
		s.Stop()
		return nil, nil, err
	}
	return s, docs, nil
}

// exactFile accepts one file argument.
func exactFile(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s takes one workflow file, got %d arguments; see %s --help", cmd.CommandPath(), len(args), cmd.CommandPath())
	}
	return nil
}

func (o *runOptions) run(cmd *cobra.Command) error {
	if o.trace {
		o.output = outputTrace
	}
	if err := o.output.set(outputSummary, outputJSON, outputTrace); err != nil {
		return err
	}
	level, err := logLevel(o.logLevel)
	if err != nil {
		return err
	}
	log := consoleLog(level)
	sub, w, err := o.submission(cmd.InOrStdin())
	if err != nil {
		return err
	}
	s, docs, err := o.startFor(cmd, w, o.start, log)
	if err != nil {
		return err
	}
	defer s.Stop()
	p := newPresenter(cmd, o.output, w.Nodes)
	own := o.nats == "" && o.redis == "" // all executions there are ours
	waits := newWaits(cmd, s.Conn)
	if waits.ask = newPrompt(cmd); waits.ask != nil {
		waits.hold = p.hold
	}
	waits.web = o.http != ""
	f := follower{conn: s.Conn, show: p, timeout: o.timeout, everything: own, waits: waits.look}
	x, err := f.run(cmd.Context(), sub)
	if err != nil {
		return err
	}
	if own && x.Status.Finished() {
		awaitOthers(cmd, s.Conn, x, x.Status == engine.StatusError && sub.Mode != "manual" && hasErrorWorkflow(w, docs))
	}
	err = p.finish(x)
	if x.Status == engine.StatusWaiting {
		if own {
			fmt.Fprintf(cmd.ErrOrStderr(), "it waits for %s and is lost when this program ends; start \"reprise dev\" and submit the workflow to it to keep it\n", kinds(x))
		} else {
			fmt.Fprintf(cmd.ErrOrStderr(), "it waits for %s; coordinators on the same servers go on with it\n", kinds(x))
		}
	}
	return err
}

// submission is what the flags and files say.
func (o *runOptions) submission(stdin io.Reader) (*queue.Submission, *workflow.Workflow, error) {
	sub, w, err := readSubmission(o.file, o.input, o.start, stdin)
	if err != nil {
		return nil, nil, err
	}
	sub.Mode = "cli"
	switch {
	case o.to == "" && (o.exclusive || o.reuse != ""):
		return nil, nil, errors.New("--exclusive and --reuse need --to NODE, the node to run up to")
	case o.to == "":
		return sub, w, nil
	case w.Node(o.to) == nil:
		return nil, nil, fmt.Errorf("--to %q: the workflow has no such node", o.to)
	case o.reuse != "" && (o.start != "" || o.input != ""):
		return nil, nil, errors.New("--reuse chooses where to begin: leave --start and --input out")
	}
	sub.Mode = "manual"
	sub.Destination = &engine.Destination{Node: o.to, Exclusive: o.exclusive}
	if o.reuse != "" {
		if sub.RunData, err = readRunData("--reuse", o.reuse); err != nil {
			return nil, nil, err
		}
	}
	return sub, w, nil
}

// readRunData reads the run data of an earlier run: the output of --output json,
// or n8n's run data alone.
func readRunData(flag, file string) (map[string][]*engine.Record, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	type result struct {
		RunData map[string][]*engine.Record `json:"runData"`
	}
	var run struct {
		Data struct {
			ResultData result `json:"resultData"`
		} `json:"data"`
		ResultData result `json:"resultData"`
		result
	}
	if err := json.Unmarshal(content, &run); err != nil {
		return nil, fmt.Errorf("%s %s: it must be the output of --output json: %w", flag, file, err)
	}
	for _, r := range []result{run.Data.ResultData, run.ResultData, run.result} {
		if r.RunData != nil {
			return r.RunData, nil
		}
	}
	return nil, fmt.Errorf("%s %s: it has no run data; it must be the output of --output json", flag, file)
}

// warner prints warnings for people.
func warner(cmd *cobra.Command) func(string) {
	out := cmd.ErrOrStderr()
	return func(text string) { fmt.Fprintln(out, styleFor(out).yellow("warning:"), text) }
}

// readSubmission reads a workflow file and the input for it.
func readSubmission(file, input, start string, stdin io.Reader) (*queue.Submission, *workflow.Workflow, error) {
	var data []byte
	var err error
	if file == "-" {
		data, err = io.ReadAll(stdin)
	} else {
		data, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read workflow: %w", err)
	}
	w, err := workflow.Parse(data)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	items, err := readInput(input)
	if err != nil {
		return nil, nil, err
	}
	if start != "" && w.Node(start) == nil {
		return nil, nil, fmt.Errorf("--start %q: the workflow has no such node", start)
	}
	return &queue.Submission{Version: queue.Version, Workflow: w.Raw, Start: start, Input: items}, w, nil
}

// readInput reads the value of --input: one item, bare or as {"json": …}.
func readInput(input string) (workflow.Items, error) {
	if input == "" {
		return nil, nil
	}
	data := []byte(input)
	if file, ok := strings.CutPrefix(input, "@"); ok {
		var err error
		if data, err = os.ReadFile(file); err != nil {
			return nil, fmt.Errorf("--input: %w", err)
		}
	}
	data = bytes.TrimSpace(data)
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, fmt.Errorf("--input must be a JSON object, or @FILE with one: %w", err)
	}
	if object == nil {
		return nil, errors.New("--input must be a JSON object, or @FILE with one: it is null")
	}
	item := workflow.Item{JSON: data}
	if inner, ok := object["json"]; ok && len(inner) > 0 && inner[0] == '{' {
		item = workflow.Item{}
		if err := json.Unmarshal(data, &item); err != nil {
			return nil, fmt.Errorf("--input: %w", err)
		}
	}
	return workflow.Items{item}, nil
}

func readScript(file string) (*mockllm.Script, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--mock-llm: %w", err)
	}
	script, err := mockllm.ParseScript(data)
	if err != nil {
		return nil, fmt.Errorf("--mock-llm %s: %w", file, err)
	}
	return script, nil
}

// usesMock reports whether a node of the workflows names the mock LLM's credential.
func usesMock(w *workflow.Workflow, others ...document) bool {
	all := []*workflow.Workflow{w}
	for _, d := range others {
		all = append(all, d.workflow)
	}
	for _, w := range all {
		for _, n := range w.Nodes {
			for _, ref := range n.Credentials {
				if ref.ID == stack.MockCredentialID {
					return true
				}
			}
		}
	}
	return false
}
