package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

type retryOptions struct {
	servers
	output                output
	fromFailed, fromStart bool
	workflow              string
	wait                  bool
	all, yes              bool
	status, workflowID    string
	since                 time.Duration
	limit                 int
}

func retryCommand() *cobra.Command {
	o := retryOptions{output: outputText}
	cmd := &cobra.Command{
		Use: "retry ID… | --all", Short: "Run executions again, as new ones.",
		Long: `Run executions again, each as a new one, and print the old and the new ids.

A failed execution goes on where it broke off: what it has done is kept and not done again,
and what failed is done under the same idempotency key. --from-start runs it anew with the
same input. It is run with the document that failed, or with the one stored under its id now
(--workflow latest).

--all retries all that failed: not those that were retried since, and not those that another
execution started (retry that one). One that cannot be retried does not stop the others;
then the exit code is 1.`,
		Example: `  reprise executions retry order-4711
  reprise executions retry order-4711 --from-start --workflow latest --wait
  reprise executions retry --all --workflow-id orders --since 2h --yes`,
		RunE: func(cmd *cobra.Command, ids []string) error { return o.run(cmd, ids) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.fromFailed, "from-failed", false, "go on where it broke off (default)")
	f.BoolVar(&o.fromStart, "from-start", false, "begin anew with the same input")
	f.StringVar(&o.workflow, "workflow", "original", "original (the document that failed) or latest (the one stored now)")
	f.BoolVar(&o.wait, "wait", false, "wait for the new executions; exit 1 when one of them fails")
	f.BoolVar(&o.all, "all", false, "all executions of --status instead of the ids")
	f.StringVar(&o.status, "status", string(engine.StatusError), "with --all: error or canceled")
	f.StringVar(&o.workflowID, "workflow-id", "", "with --all: only executions of this workflow")
	f.DurationVar(&o.since, "since", 0, "with --all: only executions that started within this time, such as 2h")
	f.IntVar(&o.limit, "limit", 0, "with --all: at most this many, the newest (default: no limit)")
	f.BoolVar(&o.yes, "yes", false, "with --all: do not ask")
	f.StringVar((*string)(&o.output), "output", string(outputText), "text or json")
	o.natsFlag(cmd, defaultNATS, "NATS server")
	cmd.MarkFlagsMutuallyExclusive("from-failed", "from-start")
	return cmd
}

// check refuses flags that make no sense together.
func (o *retryOptions) check(cmd *cobra.Command, ids []string) error {
	if err := o.output.set(outputText, outputJSON); err != nil {
		return err
	}
	switch {
	case o.workflow != "original" && o.workflow != "latest":
		return fmt.Errorf("--workflow %q: use original or latest", o.workflow)
	case o.all && len(ids) > 0:
		return errors.New("--all and ids exclude each other")
	case !o.all && len(ids) == 0:
		return errors.New("name the executions to retry, or use --all; see reprise executions retry --help")
	case o.limit < 0:
		return fmt.Errorf("--limit %d: it must not be negative", o.limit)
	case o.status != string(engine.StatusError) && o.status != string(engine.StatusCanceled):
		return fmt.Errorf("--status %q: only error and canceled can be retried", o.status)
	}
	if !o.all {
		for _, name := range []string{"status", "workflow-id", "since", "limit", "yes"} {
			if cmd.Flags().Changed(name) {
				return fmt.Errorf("--%s goes with --all only", name)
			}
		}
	}
	return nil
}

// retried is what became of one execution.
type retried struct {
	ID     engine.ExecutionID `json:"id"`
	NewID  engine.ExecutionID `json:"newId,omitempty"`
	Status engine.Status      `json:"status,omitempty"` // with --wait
	Error  string             `json:"error,omitempty"`
}

func (o *retryOptions) run(cmd *cobra.Command, args []string) error {
	if err := o.check(cmd, args); err != nil {
		return err
	}
	return withConn(cmd, &o.servers, func(ctx context.Context, conn *queue.Conn) error {
		ids := make([]engine.ExecutionID, len(args))
		for i, id := range args {
			ids[i] = engine.ExecutionID(id)
		}
		if o.all {
			var err error
			var leftOut string
			if ids, leftOut, err = o.find(ctx, conn); err != nil {
				return err
			}
			if err := o.confirm(cmd, len(ids), leftOut); err != nil {
				return err
			}
		}
		done := o.retry(ctx, conn, cmd, ids)
		if o.wait {
			o.await(ctx, conn, cmd, done)
		}
		if o.output == outputJSON {
			if err := printJSON(cmd.OutOrStdout(), done); err != nil {
				return err
			}
		}
		return o.verdict(ctx, done)
	})
}

// retry asks for the new executions, one after the other.
func (o *retryOptions) retry(ctx context.Context, conn *queue.Conn, cmd *cobra.Command, ids []engine.ExecutionID) []retried {
	done := make([]retried, 0, len(ids))
	failures := failures{cmd: cmd}
	for _, id := range ids {
		if ctx.Err() != nil {
			break
		}
		// The new id is chosen here: when the answer is lost, the request can be
		// repeated without a second execution.
		r := retried{ID: id}
		newID, err := conn.Retry(ctx, queue.RetryRequest{
			ID: id, FromStart: o.fromStart, Latest: o.workflow == "latest", NewID: engine.ExecutionID(uuid.NewString()),
		})
		if err != nil {
			r.Error = err.Error()
			failures.add(err)
		} else {
			r.NewID = newID
			if o.output == outputText {
				fmt.Fprintln(cmd.OutOrStdout(), id, "->", newID)
			}
		}
		done = append(done, r)
	}
	return done
}

// await fills in how the new executions ended.
func (o *retryOptions) await(ctx context.Context, conn *queue.Conn, cmd *cobra.Command, done []retried) {
	failures := failures{cmd: cmd}
	for i := range done {
		r := &done[i]
		if r.NewID == "" {
			continue
		}
		x, err := conn.WaitFinished(ctx, r.NewID, false, false)
		if err != nil {
			r.Error = err.Error()
			failures.add(err)
			continue
		}
		r.Status = x.Status
		if x.Error != nil {
			r.Error = x.Error.Message
		}
		if o.output == outputText {
			text := fmt.Sprintf("%s %s", r.NewID, r.Status)
			if r.Error != "" {
				text += ": " + shorten(r.Error, 160)
			}
			fmt.Fprintln(cmd.OutOrStdout(), text)
		}
	}
}

// verdict is the exit code: 1 when one of them could not be retried or, with
// --wait, did not succeed.
func (o *retryOptions) verdict(ctx context.Context, done []retried) error {
	if ctx.Err() != nil {
		return &exitError{service.ExitFailed, errors.New("interrupted")}
	}
	for _, r := range done {
		if r.NewID == "" || o.wait && r.Status != engine.StatusSuccess {
			return &exitError{code: service.ExitFailed}
		}
	}
	return nil
}

// listPage is how many executions are asked for at once when all are looked at.
const listPage = 200

// find lists what --all means, oldest first, and says what it leaves out. All
// executions are read, whatever their status: a newer one may be the retry of an older.
func (o *retryOptions) find(ctx context.Context, conn *queue.Conn) (ids []engine.ExecutionID, leftOut string, err error) {
	var (
		oldest      int64
		again       = map[engine.ExecutionID]bool{}
		known, subs int
	)
	if o.since > 0 {
		oldest = time.Now().Add(-o.since).UnixMilli()
	}
	full := func() bool { return o.limit > 0 && len(ids) == o.limit }
	for r := (queue.ListRequest{WorkflowID: o.workflowID, Limit: listPage}); ; {
		page, err := conn.List(ctx, r)
		if err != nil {
			return nil, "", err
		}
		over := page.Cursor == ""
		for _, x := range page.Executions {
			if x.StartedAt < oldest || full() {
				over = true
				break
			}
			if x.RetryOf != "" {
				again[x.RetryOf] = true
			}
			switch {
			case string(x.Status) != o.status:
			case again[x.ID]:
				known++
			case x.Parent != "":
				subs++
			default:
				ids = append(ids, x.ID)
			}
		}
		if over {
			break
		}
		r.Cursor = page.Cursor
	}
	if known > 0 {
		leftOut = fmt.Sprintf("left out: %d that were retried already\n", known)
	}
	if subs > 0 {
		leftOut += fmt.Sprintf("left out: %d that other executions started\n", subs)
	}
	slices.Reverse(ids) // in the order in which they ran
	return ids, leftOut, nil
}

// confirm asks before many executions are run again.
func (o *retryOptions) confirm(cmd *cobra.Command, n int, leftOut string) error {
	terminal := isTerminal(cmd.InOrStdin())
	if n > 0 && !o.yes && !terminal {
		return fmt.Errorf("--all would retry %d executions: add --yes, there is no terminal to ask on", n)
	}
	fmt.Fprint(cmd.ErrOrStderr(), leftOut)
	if n == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "nothing to retry")
	}
	if n == 0 || o.yes {
		return nil
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "Retry %d executions? [y/N] ", n)
	line, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); err == nil && (answer == "y" || answer == "yes") {
		return nil
	}
	return &exitError{service.ExitFailed, errors.New("nothing was retried")}
}
