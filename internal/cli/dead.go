package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

func deadCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "dead", Short: "Look at dead letters: jobs that were given up, and submissions that were refused.",
		Long: `Look at dead letters, replay and drop them.

A job becomes a dead letter when every worker that was given it was lost, as often as the
delivery limit. Its execution was told: the node failed with the reason worker_lost, and the
execution failed, or went on with that (an Agent is told that its tool failed).

A durable submission becomes one when it is refused, as an invalid workflow is.`,
	}
	cmd.AddCommand(deadListCommand(), deadShowCommand(), deadReplayCommand(), deadDropCommand())
	return cmd
}

// deadFlags are what all commands on dead letters take.
type deadFlags struct {
	servers
	output output
}

func (f *deadFlags) add(cmd *cobra.Command) {
	f.output = outputText
	cmd.Flags().StringVar((*string)(&f.output), "output", string(outputText), "text or json")
	f.natsFlag(cmd, defaultNATS, "NATS server")
}

func (f *deadFlags) with(cmd *cobra.Command, do func(ctx context.Context, conn *queue.Conn) error) error {
	if err := f.output.set(outputText, outputJSON); err != nil {
		return err
	}
	return withConn(cmd, &f.servers, do)
}

func deadListCommand() *cobra.Command {
	var f deadFlags
	var execution string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List dead letters, newest first.", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.with(cmd, func(ctx context.Context, conn *queue.Conn) error {
				letters, err := conn.DeadLetters(ctx, engine.ExecutionID(execution), limit)
				if err != nil {
					return err
				}
				out := cmd.OutOrStdout()
				if f.output == outputJSON {
					if letters == nil {
						letters = []queue.StoredDeadLetter{}
					}
					return printJSON(out, letters)
				}
				fmt.Fprintln(out, styleFor(out).dim(fmt.Sprintf("%6s  %-19s  %-36s  %-20s  %s", "ID", "AT", "EXECUTION", "NODE", "ERROR")))
				for i := range letters {
					l := &letters[i]
					fmt.Fprintf(out, "%6d  %-19s  %-36s  %-20s  %s\n", l.Sequence, time.UnixMilli(l.At).Format(time.DateTime), l.Execution,
						shorten(nodeOrKind(l), 20), shorten(l.Error, 120))
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&execution, "execution", "", "only those of this execution")
	cmd.Flags().IntVar(&limit, "limit", 100, "greatest number")
	f.add(cmd)
	return cmd
}

func nodeOrKind(l *queue.StoredDeadLetter) string {
	if l.Node == "" {
		return "(submission)"
	}
	return l.Node
}

func deadShowCommand() *cobra.Command {
	var f deadFlags
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show a dead letter, and what became of its execution.", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := letterIDs(args)
			if err != nil {
				return err
			}
			return f.with(cmd, func(ctx context.Context, conn *queue.Conn) error {
				l, err := conn.DeadLetter(ctx, ids[0])
				if err != nil {
					return err
				}
				if f.output == outputJSON {
					return printJSON(cmd.OutOrStdout(), l)
				}
				printLetter(cmd.OutOrStdout(), l)
				if l.Node != "" {
					fmt.Fprintf(cmd.OutOrStdout(), "now         %s\n", executionNow(ctx, conn, l.Execution))
				}
				return nil
			})
		},
	}
	f.add(cmd)
	return cmd
}

func printLetter(out io.Writer, l *queue.StoredDeadLetter) {
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(out, "%-11s %s\n", name, value)
		}
	}
	line("id", strconv.FormatUint(l.Sequence, 10))
	line("at", time.UnixMilli(l.At).Format(time.DateTime))
	line("execution", string(l.Execution))
	line("workflow", l.WorkflowName)
	if l.Node != "" {
		line("node", fmt.Sprintf("%s (run %d)", l.Node, l.RunIndex))
		line("job", string(l.Job))
		line("attempts", strconv.Itoa(l.Attempts))
		line("deliveries", strconv.Itoa(l.Deliveries))
	}
	line("reason", string(l.Reason))
	line("error", l.Error)
	if l.Problem != nil {
		line("code", l.Problem.Code)
		for _, detail := range l.Problem.Details {
			line("", detail)
		}
	}
}

// executionNow says how the execution of a letter is.
func executionNow(ctx context.Context, conn *queue.Conn, id engine.ExecutionID) string {
	x, err := conn.Get(ctx, id, false)
	if err != nil {
		return queue.ProblemOf(err).Message
	}
	return string(x.Status)
}

func letterIDs(args []string) ([]uint64, error) {
	ids := make([]uint64, len(args))
	for i, text := range args {
		var err error
		if ids[i], err = strconv.ParseUint(text, 10, 64); err != nil || ids[i] == 0 {
			return nil, fmt.Errorf("dead letter %q: its id is a number; see reprise dead list", text)
		}
	}
	return ids, nil
}

// letterOutcome is what became of one letter.
type letterOutcome struct {
	ID        uint64             `json:"id"`
	Execution engine.ExecutionID `json:"execution,omitempty"`
	// Replayed is the execution that does again what the letter stands for.
	Replayed engine.ExecutionID `json:"replayed,omitempty"`
	Dropped  bool               `json:"dropped,omitempty"`
	Error    string             `json:"error,omitempty"`
}

func deadReplayCommand() *cobra.Command {
	return eachLetter(&cobra.Command{
		Use: "replay ID…", Short: "Do again what dead letters stand for.",
		Long: `Do again what dead letters stand for, and remove them.

For a job, its execution is retried from where it failed, as a new one: what was done is kept, and
the job's node is run again under the same idempotency key. Several letters of one execution are
one retry. An execution that did not fail has gone on without the job: to run that node alone
would change nothing any more. It can be run again as a whole:

  reprise executions retry ID --from-start

A refused submission is submitted again under its id.`,
	}, func(ctx context.Context, conn *queue.Conn, id uint64, o *letterOutcome) error {
		l, err := conn.DeadLetter(ctx, id)
		if err != nil {
			return err
		}
		o.Execution = l.Execution
		if o.Replayed, err = replayLetter(ctx, conn, l); err != nil {
			return err
		}
		return conn.DeleteDead(ctx, id)
	}, func(out io.Writer, o *letterOutcome) { fmt.Fprintf(out, "replayed %d as %s\n", o.ID, o.Replayed) })
}

// replaySuffix of the execution that a letter is replayed as: the same for all letters of one
// execution, and however often one is replayed, so that it is one retry.
const replaySuffix = "-replay"

func replayLetter(ctx context.Context, conn *queue.Conn, l *queue.StoredDeadLetter) (engine.ExecutionID, error) {
	if l.Node == "" {
		if len(l.Submission) == 0 {
			return "", fmt.Errorf("the submission was not kept, as it cannot be read: submit it again yourself, or drop the letter")
		}
		var s queue.Submission
		if err := json.Unmarshal(l.Submission, &s); err != nil {
			return "", fmt.Errorf("the submission cannot be read: %w", err)
		}
		return conn.SubmitPatiently(ctx, &s, retryFor, nil)
	}
	x, err := conn.Get(ctx, l.Execution, false)
	if err != nil {
		return "", err
	}
	switch {
	case x.Status == engine.StatusError:
	case !x.Status.Finished():
		return "", fmt.Errorf("execution %s (%s) goes on without node %q, which failed in it: await its end, then run it again "+
			"with `reprise executions retry %s --from-start`", x.ID, x.Status, l.Node, x.ID)
	default:
		return "", fmt.Errorf("execution %s (%s) has gone on without node %q, so that running it alone would change nothing: run all of it again "+
			"with `reprise executions retry %s --from-start`, or drop the letter", x.ID, x.Status, l.Node, x.ID)
	}
	retry := queue.RetryRequest{ID: x.ID}
	const maxID = 128
	if len(x.ID)+len(replaySuffix) <= maxID {
		retry.NewID = x.ID + replaySuffix
	}
	return conn.Retry(ctx, retry)
}

func deadDropCommand() *cobra.Command {
	return eachLetter(&cobra.Command{
		Use: "drop ID…", Short: "Remove dead letters that are dealt with; their executions stay as they are.",
	}, func(ctx context.Context, conn *queue.Conn, id uint64, o *letterOutcome) error {
		l, err := conn.DeadLetter(ctx, id)
		if err != nil {
			return err
		}
		o.Execution, o.Dropped = l.Execution, true
		return conn.DeleteDead(ctx, id)
	}, func(out io.Writer, o *letterOutcome) {
		fmt.Fprintf(out, "dropped %d of execution %s\n", o.ID, o.Execution)
	})
}

// eachLetter makes a command that does something to each of some letters. One that fails does
// not stop the others; then the exit code is 1.
func eachLetter(cmd *cobra.Command, do func(context.Context, *queue.Conn, uint64, *letterOutcome) error, say func(io.Writer, *letterOutcome)) *cobra.Command {
	var f deadFlags
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return errors.New("give the ids of dead letters; see reprise dead list")
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ids, err := letterIDs(args)
		if err != nil {
			return err
		}
		return f.with(cmd, func(ctx context.Context, conn *queue.Conn) error {
			outcomes, failed := make([]letterOutcome, len(ids)), false
			for i, id := range ids {
				o := &outcomes[i]
				o.ID = id
				if err := do(ctx, conn, id, o); err != nil {
					failed = true
					*o = letterOutcome{ID: id, Execution: o.Execution, Error: err.Error()}
				}
				switch {
				case f.output == outputJSON:
				case o.Error != "":
					fmt.Fprintf(cmd.ErrOrStderr(), "dead letter %d: %s\n", id, o.Error)
				default:
					say(cmd.OutOrStdout(), o)
				}
			}
			if f.output == outputJSON {
				if err := printJSON(cmd.OutOrStdout(), outcomes); err != nil {
					return err
				}
			}
			if failed {
				return &exitError{code: service.ExitFailed}
			}
			return nil
		})
	}
	f.add(cmd)
	return cmd
}
