package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// connectTimeout bounds a client's first connection.
const connectTimeout = 5 * time.Second

// connect opens a client's connection to NATS.
func connect(ctx context.Context, url string) (*queue.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	config, err := natsConfig(url, "reprise-cli")
	if err != nil {
		return nil, err
	}
	return queue.Connect(ctx, config)
}

type submitOptions struct {
	servers
	output                       output
	id, input, start, workflowID string
	wait, untilWaiting, durable  bool
	timeout, retryFor            time.Duration
}

// sayRefused tells that a submission was refused for now.
func sayRefused(cmd *cobra.Command) func(*queue.Problem, time.Duration) {
	return func(p *queue.Problem, pause time.Duration) {
		fmt.Fprintf(cmd.ErrOrStderr(), "not taken yet (%s): %s; trying again in %s\n", p.Code, p.Message, pause.Round(100*time.Millisecond))
	}
}

// retryFor is how long a submission is tried again by default.
const retryFor = time.Minute

func submitCommand() *cobra.Command {
	o := submitOptions{output: outputSummary}
	cmd := &cobra.Command{
		Use:   "submit FILE | --workflow-id ID",
		Short: "Submit a workflow to running coordinators over NATS; prints the execution id.",
		Long: `Submit a workflow file, or one that is stored under an id ("reprise workflows put"), to running
coordinators over NATS, and print the execution id. --wait follows the execution to its end and
prints its result, also when it waits in between; with --until-waiting that ends, with exit
code 3, when all that is left needs a person or a webhook.

While coordinators refuse because too much waits already, because Redis or NATS has no room, or because
Redis does not answer, the submission is tried again, up to --retry-for; then the exit code
is 4. With --durable it is stored at once and taken when there is room.`,
		Example: `  reprise submit flow.json
  reprise submit flow.json --id order-4711 --input '{"chatInput":"hello"}' --wait
  reprise submit --workflow-id orders --until-waiting`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.workflowID == "" {
				return exactFile(cmd, args)
			}
			if len(args) > 0 {
				return errors.New("give a workflow file or --workflow-id, not both")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	f := cmd.Flags()
	f.StringVar(&o.id, "id", "", "execution id; submitting it again does not start it again")
	f.StringVar(&o.workflowID, "workflow-id", "", "submit the workflow stored under this id instead of a file")
	f.StringVar(&o.input, "input", "", "the start node's one item: JSON, or @FILE")
	f.StringVar(&o.start, "start", "", "name of the node to start from (default: the workflow's trigger)")
	f.BoolVar(&o.wait, "wait", false, "follow the execution and print its result")
	f.BoolVar(&o.untilWaiting, "until-waiting", false, "the same as --wait, but end when it waits for a person or a webhook")
	f.BoolVar(&o.durable, "durable", false, "store the submission in NATS even when no coordinator runs")
	f.StringVar((*string)(&o.output), "output", string(outputSummary), "summary, json or trace")
	f.DurationVar(&o.timeout, "timeout", 0, "with --wait: cancel the execution after this time (default: never)")
	f.DurationVar(&o.retryFor, "retry-for", retryFor, "how long to try again while coordinators are overloaded or cannot reach Redis, 0 for not at all")
	o.natsFlag(cmd, defaultNATS, "NATS server")
	return cmd
}

func (o *submitOptions) run(cmd *cobra.Command, args []string) error {
	if err := o.output.set(outputSummary, outputJSON, outputTrace); err != nil {
		return err
	}
	o.wait = o.wait || o.untilWaiting
	if o.wait && o.durable {
		return errors.New("--wait and --durable exclude each other")
	}
	sub := &queue.Submission{Version: queue.Version, WorkflowID: o.workflowID, Start: o.start}
	var nodes []*workflow.Node
	var err error
	if o.workflowID == "" {
		var w *workflow.Workflow
		if sub, w, err = readSubmission(args[0], o.input, o.start, cmd.InOrStdin()); err != nil {
			return err
		}
		nodes = w.Nodes
	} else if sub.Input, err = readInput(o.input); err != nil {
		return err
	}
	sub.ID = engine.ExecutionID(o.id)
	sub.TraceParent = os.Getenv("TRACEPARENT") // of whoever calls us, as command lines pass it on
	return withConn(cmd, &o.servers, func(ctx context.Context, conn *queue.Conn) error {
		switch {
		case o.wait:
			if o.workflowID != "" && o.output == outputTrace {
				if nodes, err = storedNodes(ctx, conn, o.workflowID); err != nil {
					return err
				}
			}
			return o.follow(ctx, cmd, conn, sub, nodes)
		case o.durable:
			if sub.ID == "" {
				sub.ID = engine.ExecutionID(uuid.NewString())
			}
			err = conn.SubmitDurable(ctx, sub)
		default:
			sub.ID, err = conn.SubmitPatiently(ctx, sub, o.retryFor, sayRefused(cmd))
		}
		if err != nil {
			return err
		}
		if o.output == outputJSON {
			return printJSON(cmd.OutOrStdout(), map[string]any{"id": sub.ID})
		}
		fmt.Fprintln(cmd.OutOrStdout(), sub.ID)
		return nil
	})
}

func (o *submitOptions) follow(ctx context.Context, cmd *cobra.Command, conn *queue.Conn, sub *queue.Submission, nodes []*workflow.Node) error {
	p := newPresenter(cmd, o.output, nodes)
	w := newWaits(cmd, conn)
	w.patient = !o.untilWaiting
	f := follower{conn: conn, show: p, timeout: o.timeout, waits: w.look, retryFor: o.retryFor, refused: sayRefused(cmd)}
	x, err := f.run(ctx, sub)
	if err != nil {
		return err
	}
	return p.finish(x)
}

// storedNodes are the nodes of a stored workflow.
func storedNodes(ctx context.Context, conn *queue.Conn, id string) ([]*workflow.Node, error) {
	stored, err := conn.Workflow(ctx, id)
	if err != nil {
		return nil, noWorkflow(id, err)
	}
	w, err := workflow.Parse(stored.Document)
	if err != nil {
		return nil, fmt.Errorf("stored workflow %s: %w", id, err)
	}
	return w.Nodes, nil
}
