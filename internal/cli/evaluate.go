package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/pkg/engine"
	evalnodes "github.com/reprise-engine/reprise/pkg/nodes/evaluation"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/table"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

type evaluateOptions struct {
	runOptions
	rows            string
	limit, parallel int
	min             []string
}

func evaluateCommand() *cobra.Command {
	o := evaluateOptions{runOptions: runOptions{output: outputSummary}}
	cmd := &cobra.Command{
		Use: "evaluate FILE", Short: "Run a workflow for each row of a dataset and print its metrics.",
		Long: `Run a workflow file once for each row of a dataset, from its Evaluation Trigger, and print the
metrics that its Evaluation nodes set, with their means.

The rows are those of a file (--rows: CSV with a header, a JSON list, or JSON lines), or those of
the trigger's data table on the servers that --nats and --redis name. Outputs are written back into the
rows of that table; those of a file are only printed (--output json). What the trigger says about the
number of rows counts for both.

--min makes the command fail when a mean is too low. Exit codes: 0 all is well, 1 a row failed or a
minimum is missed, 2 wrong usage.`,
		Example: `  reprise evaluate examples/evaluation.json --rows examples/evaluation-rows.jsonl
  reprise evaluate flow.json --rows cases.csv --min accuracy=0.9 --output json
  reprise evaluate flow.json --nats nats://127.0.0.1:4222 --redis redis://127.0.0.1:6379`,
		Args: exactFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.file = args[0]
			return o.evaluate(cmd)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.rows, "rows", "", "file with the rows: .csv, .json or .jsonl (default: the trigger's data table)")
	f.IntVar(&o.limit, "limit", 0, "greatest number of rows (default: what the trigger says)")
	f.IntVar(&o.parallel, "parallel", 1, "rows that may run at once")
	f.StringArrayVar(&o.min, "min", nil, "NAME=VALUE: the least mean of a metric; may be given again")
	f.StringVar((*string)(&o.output), "output", string(outputSummary), "summary or json")
	f.DurationVar(&o.timeout, "timeout", 0, "cancel a row's execution after this time (default: never)")
	o.stackFlags(cmd)
	return cmd
}

func (o *evaluateOptions) evaluate(cmd *cobra.Command) error {
	if err := o.output.set(outputSummary, outputJSON); err != nil {
		return err
	}
	if o.parallel < 1 || o.limit < 0 {
		return errors.New("--parallel must be 1 or more, and --limit not below 0")
	}
	minima, err := parseMinima(o.min)
	if err != nil {
		return err
	}
	level, err := logLevel(o.logLevel)
	if err != nil {
		return err
	}
	log := consoleLog(level)
	sub, w, err := readSubmission(o.file, "", "", cmd.InOrStdin())
	if err != nil {
		return err
	}
	trigger := evaluationTrigger(w)
	if trigger == nil {
		return fmt.Errorf("%s has no Evaluation Trigger to begin at", o.file)
	}
	rows, err := o.fileRows(trigger)
	if err != nil {
		return err
	}
	sub.Start, sub.Mode = trigger.Name, evalnodes.Mode
	if o.rows == "" {
		if sub.Workflow, err = writesBack(w, trigger, warner(cmd)); err != nil {
			return err
		}
	}
	s, _, err := o.startFor(cmd, w, trigger.Name, log)
	if err != nil {
		return err
	}
	defer s.Stop()
	if o.rows == "" {
		if _, rows, err = allRows(cmd.Context(), s.Conn, evalnodes.DatasetOf(trigger).Table); err != nil {
			return err
		}
	}
	if rows = rows[:o.bound(trigger, len(rows))]; len(rows) == 0 {
		return errors.New("the dataset has no rows")
	}
	e := evaluator{cmd: cmd, conn: s.Conn, workflow: w, options: o}
	report, err := e.run(cmd.Context(), sub, rows)
	if err != nil {
		return err
	}
	return e.finish(report, minima)
}

// bound is how many of the rows are run.
func (o *evaluateOptions) bound(trigger *workflow.Node, rows int) int {
	for _, most := range []int{o.limit, evalnodes.DatasetOf(trigger).Max} {
		if most > 0 {
			rows = min(rows, most)
		}
	}
	return rows
}

// evaluator runs a workflow row by row.
type evaluator struct {
	cmd      *cobra.Command
	conn     *queue.Conn
	workflow *workflow.Workflow
	options  *evaluateOptions

	mu sync.Mutex // of what is printed
}

// run runs the workflow for each row. A row that fails is in the report; an error is what keeps all from
// being run.
func (e *evaluator) run(ctx context.Context, sub *queue.Submission, rows []json.RawMessage) (*evaluationReport, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	report := &evaluationReport{Rows: make([]evaluatedRow, len(rows))}
	next := make(chan int)
	var running sync.WaitGroup
	for range min(e.options.parallel, len(rows)) {
		running.Go(func() {
			for i := range next {
				own := *sub
				own.Input = workflow.Items{{JSON: rows[i]}}
				row, err := e.one(ctx, &own)
				if err != nil {
					cancel(err) // the first one counts
					continue
				}
				row.Row = i + 1
				report.Rows[i] = *row
				e.show(row)
			}
		})
	}
	e.head()
	for i := range rows {
		select {
		case next <- i:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	running.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	report.sum()
	return report, nil
}

// one runs the workflow for a row.
func (e *evaluator) one(ctx context.Context, sub *queue.Submission) (*evaluatedRow, error) {
	waits := newWaits(e.cmd, e.conn)
	waits.line = nil
	f := follower{
		conn: e.conn, show: newPresenter(e.cmd, outputJSON, nil), timeout: e.options.timeout, waits: waits.look,
		retryFor: retryFor, refused: sayRefused(e.cmd),
		everything: e.options.nats == "" && e.options.redis == "",
	}
	x, err := f.run(ctx, sub)
	if exit := (*exitError)(nil); errors.As(err, &exit) && exit.code == service.ExitFailed && ctx.Err() == nil {
		row := newEvaluatedRow(sub.ID, engine.StatusCanceled)
		row.Error = exit.Error()
		return row, nil // it took too long
	}
	if err != nil {
		return nil, err
	}
	row := newEvaluatedRow(x.ID, x.Status)
	switch {
	case x.Status == engine.StatusWaiting:
		row.Status, row.Error = engine.StatusCanceled, "it waits for "+kinds(x)+", which nobody answers during an evaluation"
		cancelling, cancel := context.WithTimeout(ctx, cancelTimeout)
		defer cancel()
		if err := e.conn.Cancel(cancelling, x.ID, row.Error); err != nil {
			return nil, err
		}
	case x.Error != nil:
		if row.Error = x.Error.Message; x.Error.Node != "" {
			row.Error = x.Error.Node + ": " + row.Error
		}
	}
	return row, row.collect(e.workflow, x)
}

// cancelTimeout bounds the cancelling of an execution that waits.
const cancelTimeout = 5 * time.Second

func (e *evaluator) head() {
	if e.options.output == outputSummary {
		out := e.cmd.OutOrStdout()
		fmt.Fprintln(out, styleFor(out).dim(fmt.Sprintf("%4s  %-8s  %s", "ROW", "STATUS", "METRICS")))
	}
}

// show prints a row's line, as soon as the row is done.
func (e *evaluator) show(row *evaluatedRow) {
	if e.options.output != outputSummary {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	row.print(e.cmd.OutOrStdout())
}

// finish prints the report; its error carries the exit code.
func (e *evaluator) finish(report *evaluationReport, minima []minimum) error {
	var out io.Writer = e.cmd.OutOrStdout()
	if e.options.output == outputJSON {
		if err := printJSON(out, report); err != nil {
			return err
		}
	} else {
		report.print(out)
	}
	if err := report.verdict(minima); err != nil {
		return &exitError{code: service.ExitFailed, err: err}
	}
	return nil
}

func evaluationTrigger(w *workflow.Workflow) *workflow.Node {
	for _, n := range w.Nodes {
		if n.Type == evalnodes.TypeTrigger && !n.Disabled {
			return n
		}
	}
	return nil
}

// fileRows are the rows of --rows; nil when they are to be read from the trigger's data table.
func (o *evaluateOptions) fileRows(trigger *workflow.Node) ([]json.RawMessage, error) {
	if o.rows != "" {
		return readDataset(o.rows)
	}
	switch d := evalnodes.DatasetOf(trigger); {
	case d.Table == table.Ref{}:
		return nil, fmt.Errorf("%q names no data table that can be read here: give the rows with --rows FILE", trigger.Name)
	case o.nats == "" && o.redis == "":
		return nil, errors.New("give the rows with --rows FILE, or the servers that keep the data table with --nats and --redis")
	case d.Filter:
		return nil, fmt.Errorf("%q filters its rows, which is not supported: give the rows with --rows FILE", trigger.Name)
	}
	return nil, nil
}
