package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

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
	timeout               time.Duration
}

func runCommand() *cobra.Command {
	o := runOptions{output: outputSummary}
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Run a workflow file and print what came out.",
		Long: `Run a workflow file in this process, on an embedded NATS and Redis (or on the servers that
--nats and --redis name), and print the result. FILE may be "-" for standard input.`,
		Example: `  reprise run examples/agent-parallel-tools.json
  reprise run --trace examples/agent-stack-trace.json
  reprise run flow.json --input '{"chatInput":"hello"}' --output json
  reprise run flow.json --credentials credentials.json`,
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
	f.StringVar(&o.script, "mock-llm", "", "script of a mock LLM that all OpenAI credentials lead to")
	f.StringVar(&o.credentials, "credentials", os.Getenv("REPRISE_CREDENTIALS_FILE"), "credentials in the format of n8n's decrypted export")
	f.StringVar(&o.workflows, "workflows", "", "directory of workflows that this one may call (no node type calls workflows yet)")
	f.IntVar(&o.workers, "workers", 1, "workers to start")
	f.IntVar(&o.coordinators, "coordinators", 1, "coordinators to start")
	f.DurationVar(&o.timeout, "timeout", 0, "cancel the execution after this time (default: never)")
	f.StringVar(&o.logLevel, "log-level", "error", "debug, info, warn or error, on stderr")
	o.natsFlag(cmd, "", "NATS server to use instead of an embedded one")
	o.redisFlag(cmd, "Redis server to use instead of an embedded one")
	return cmd
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
	sub, w, err := readSubmission(o.file, o.input, o.start, cmd.InOrStdin())
	if err != nil {
		return err
	}
	sub.Mode = "cli"
	level, err := logLevel(o.logLevel)
	if err != nil {
		return err
	}
	// Nothing is started for a workflow that cannot run.
	problems := workflow.ValidateStart(w, nodetypes.Registry(), o.start)
	if err := problems.Err(); err != nil {
		return fmt.Errorf("%s cannot run:\n%w", o.file, err)
	}
	for _, warning := range problems.Warnings() {
		out := cmd.ErrOrStderr()
		fmt.Fprintln(out, styleFor(out).yellow("warning:"), warning)
	}
	config := stack.Config{
		NATSURL: o.nats, RedisURL: o.redis, Workers: o.workers, Coordinators: o.coordinators,
		CredentialsFile: o.credentials, MockLLM: usesMock(w), Log: consoleLog(level),
	}
	if o.script != "" {
		if config.Script, err = readScript(o.script); err != nil {
			return err
		}
	}
	s, err := stack.Start(cmd.Context(), config)
	if err != nil {
		return err
	}
	defer s.Stop()
	p := newPresenter(cmd, o.output, w)
	execution, err := submitAndWait(cmd.Context(), s.Conn, sub, p, o.timeout)
	if err != nil {
		return err
	}
	return p.finish(execution)
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

// usesMock reports whether a node names the mock LLM's credential.
func usesMock(w *workflow.Workflow) bool {
	for _, n := range w.Nodes {
		for _, ref := range n.Credentials {
			if ref.ID == stack.MockCredentialID {
				return true
			}
		}
	}
	return false
}

// pollInterval is how often a waiting client looks at an execution whose
// notices it may have missed.
const pollInterval = 2 * time.Second

// submitAndWait submits, follows the execution and returns it when it is over
// or waits for somebody. When ctx ends the execution is cancelled.
func submitAndWait(ctx context.Context, conn *queue.Conn, sub *queue.Submission, p *presenter, timeout time.Duration) (*queue.Execution, error) {
	over := make(chan struct{}, 1)
	if sub.ID == "" {
		sub.ID = engine.ExecutionID(uuid.NewString())
	} else {
		over <- struct{}{} // it may be a repetition, and over since long
	}
	stop, err := conn.WatchLive(sub.ID, func(l queue.Live) {
		p.live(l.Live)
		if l.Kind == engine.LiveExecutionFinished {
			select {
			case over <- struct{}{}:
			default:
			}
		}
	})
	if err != nil {
		return nil, err
	}
	defer stop()
	if _, err := conn.Submit(ctx, sub); err != nil {
		return nil, err
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		select {
		case <-over:
		case <-ticker.C:
		case <-ctx.Done():
			return nil, abandon(conn, sub.ID, ctx.Err())
		}
		x, err := conn.Get(ctx, sub.ID, true)
		if err != nil {
			if ctx.Err() != nil {
				return nil, abandon(conn, sub.ID, ctx.Err())
			}
			return nil, err
		}
		if x.Status.Finished() || x.Status == engine.StatusWaiting {
			return x, nil
		}
	}
}

// abandon cancels an execution nobody waits for any more.
func abandon(conn *queue.Conn, id engine.ExecutionID, cause error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	text := "interrupted: the execution was cancelled"
	if errors.Is(cause, context.DeadlineExceeded) {
		text = "timed out: the execution was cancelled"
	}
	if err := conn.Cancel(ctx, id, text); err != nil {
		text += " (not confirmed: " + err.Error() + ")"
	}
	return &exitError{service.ExitFailed, errors.New(text)}
}
