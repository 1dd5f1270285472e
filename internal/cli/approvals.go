package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

func approvalsCommand() *cobra.Command {
	var s servers
	var execution, asOutput string
	cmd := &cobra.Command{
		Use: "approvals", Short: "List the questions that wait for a person, oldest first.",
		Example: `  reprise executions approvals
  reprise executions approvals --execution order-4711 --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := output(asOutput)
			if err := o.set(outputText, outputJSON); err != nil {
				return err
			}
			return withConn(cmd, &s, func(ctx context.Context, conn *queue.Conn) error {
				open, err := openApprovals(ctx, conn, engine.ExecutionID(execution))
				if err != nil {
					return err
				}
				out := cmd.OutOrStdout()
				if o == outputJSON {
					return printJSON(out, open)
				}
				if len(open) == 0 {
					fmt.Fprintln(cmd.ErrOrStderr(), "no question waits for an answer")
				}
				for i := range open {
					if i > 0 {
						fmt.Fprintln(out)
					}
					printApproval(out, styleFor(out), &open[i], time.Now())
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&execution, "execution", "", "only the questions of this execution")
	cmd.Flags().StringVar(&asOutput, "output", string(outputText), "text or json (a list)")
	s.natsFlag(cmd, defaultNATS, "NATS server")
	return cmd
}

// openApprovals returns all open questions, of one execution when it is named.
func openApprovals(ctx context.Context, conn *queue.Conn, execution engine.ExecutionID) ([]queue.Approval, error) {
	all := []queue.Approval{} // an empty list, not null, in JSON
	for r := (queue.ApprovalsRequest{Execution: execution}); ; {
		page, err := conn.Approvals(ctx, r)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Approvals...)
		if page.Cursor == "" {
			return all, nil
		}
		r.Cursor = page.Cursor
	}
}

func approvalCommand() *cobra.Command {
	var s servers
	var asOutput string
	cmd := &cobra.Command{
		Use: "approval ID", Short: "Show one question and what became of it.",
		Example: `  reprise executions approval order-4711_3`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o := output(asOutput)
			if err := o.set(outputText, outputJSON); err != nil {
				return err
			}
			return withConn(cmd, &s, func(ctx context.Context, conn *queue.Conn) error {
				a, err := conn.Approval(ctx, args[0])
				if err != nil {
					return refusal(ctx, conn, args[0], err)
				}
				out := cmd.OutOrStdout()
				if o == outputJSON {
					return printJSON(out, a)
				}
				printApproval(out, styleFor(out), a, time.Now())
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&asOutput, "output", string(outputText), "text or json")
	s.natsFlag(cmd, defaultNATS, "NATS server")
	return cmd
}

func approveCommand() *cobra.Command {
	return decideCommand(true, &cobra.Command{
		Use: "approve ID…", Short: "Answer questions with yes: what was asked for is done.",
		Long: `Answer questions with yes. What was asked about, a tool call with exactly the arguments shown,
is run once; for a question that asks for a text, --feedback is the answer.

A question is decided once. One that is decided already, has expired or is not known is
refused with exit code 2, and the others on the command line are decided all the same.`,
		Example: `  reprise executions approve order-4711_3
  reprise executions approve order-4711_3 --feedback "but not on a Sunday"`,
	})
}

func denyCommand() *cobra.Command {
	return decideCommand(false, &cobra.Command{
		Use: "deny ID…", Short: "Answer questions with no: what was asked for is not done.",
		Long: `Answer questions with no. The tool is not run; an Agent is told so, with the feedback.

A question is decided once. One that is decided already, has expired or is not known is
refused with exit code 2, and the others on the command line are decided all the same.`,
		Example: `  reprise executions deny order-4711_3 --feedback "40 euros are too much"`,
	})
}

// decideCommand makes approve and deny of cmd.
func decideCommand(approved bool, cmd *cobra.Command) *cobra.Command {
	var s servers
	var feedback, by, asOutput string
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		o := output(asOutput)
		if err := o.set(outputText, outputJSON); err != nil {
			return err
		}
		outcome := engine.OutcomeDenied
		if approved {
			outcome = engine.OutcomeApproved
		}
		return withConn(cmd, &s, func(ctx context.Context, conn *queue.Conn) error {
			type decided struct {
				ID      string         `json:"id"`
				Outcome engine.Outcome `json:"outcome,omitempty"`
				Error   string         `json:"error,omitempty"`
			}
			done := []decided{}
			failures := failures{cmd: cmd}
			for _, id := range ids {
				err := conn.Decide(ctx, queue.DecideRequest{ID: id, Decision: engine.Decision{
					Approved: approved, Feedback: feedback, By: by, At: time.Now().UnixMilli(),
				}})
				if err != nil {
					err = refusal(ctx, conn, id, err)
					done = append(done, decided{ID: id, Error: err.Error()})
					failures.add(err)
					continue
				}
				done = append(done, decided{ID: id, Outcome: outcome})
				if o == outputText {
					fmt.Fprintln(cmd.OutOrStdout(), outcome, id)
				}
			}
			if o == outputJSON {
				if err := printJSON(cmd.OutOrStdout(), done); err != nil {
					return err
				}
			}
			return failures.err()
		})
	}
	cmd.Flags().StringVar(&feedback, "feedback", "", "a text for the model, or the answer to a question that asks for one")
	cmd.Flags().StringVar(&by, "by", loginName(), "who decides, for the record")
	cmd.Flags().Lookup("by").DefValue = "" // the help is the same for everybody
	cmd.Flags().StringVar(&asOutput, "output", string(outputText), "text or json")
	s.natsFlag(cmd, defaultNATS, "NATS server")
	return cmd
}

// loginName is the name of the user who runs the program, "" when it is not known.
func loginName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

// failures of a command that does several things and goes on after one that failed.
type failures struct {
	cmd   *cobra.Command
	code  int
	count int
}

// add tells a failure.
func (f *failures) add(err error) {
	out := f.cmd.ErrOrStderr()
	fmt.Fprintln(out, styleFor(out).red("error:"), err)
	if f.code == 0 {
		f.code = exitCode(err)
	}
	f.count++
}

// err ends the command with the exit code of the first failure.
func (f *failures) err() error {
	if f.count == 0 {
		return nil
	}
	return &exitError{code: f.code}
}

// refusal says in words why a question cannot be shown or decided.
func refusal(ctx context.Context, conn *queue.Conn, id string, err error) error {
	problem := (*queue.Problem)(nil)
	if !errors.As(err, &problem) {
		return err
	}
	text := ""
	switch problem.Code {
	case queue.CodeNotFound:
		text = fmt.Sprintf("there is no question %q; \"reprise executions approvals\" lists those that are open", id)
	case queue.CodeConflict, queue.CodeGone:
		a, shown := conn.Approval(ctx, id)
		if shown != nil || a.Outcome == "" {
			return err
		}
		switch a.Outcome {
		case engine.OutcomeExpired:
			text = fmt.Sprintf("question %q cannot be answered any more: it expired at %s", id, clock(a.Expires))
		case engine.OutcomeCanceled:
			text = fmt.Sprintf("question %q cannot be answered any more: its execution is over", id)
		default:
			text = fmt.Sprintf("question %q is decided already: %s", id, decisionText(a.Outcome, a.Decision, true))
		}
	default:
		return err
	}
	return &exitError{service.ExitUsage, errors.New(text)}
}

// decisionText is an outcome with who decided, what they wrote and, when asked
// for, when.
func decisionText(outcome engine.Outcome, d *engine.Decision, when bool) string {
	text := string(outcome)
	if d == nil {
		return text
	}
	if d.By != "" {
		text += " by " + d.By
	}
	if when && d.At > 0 {
		text += " at " + clock(d.At)
	}
	if d.Feedback != "" {
		text += fmt.Sprintf(": %q", shorten(d.Feedback, 160))
	}
	return text
}

// clock is a moment in milliseconds since 1970 as people write it.
func clock(at int64) string { return time.UnixMilli(at).Format(time.DateTime) }

// about is a duration without the digits that nobody reads.
func about(d time.Duration) string {
	switch {
	case d < time.Second:
		return "a moment"
	case d < time.Minute:
		return d.Truncate(time.Second).String()
	case d < 48*time.Hour:
		return strings.TrimSuffix(d.Truncate(time.Minute).String(), "0s")
	}
	return fmt.Sprintf("%d days", int(d/(24*time.Hour)))
}

// printApproval shows a question, and how to answer it while it is open.
func printApproval(out io.Writer, s style, a *queue.Approval, now time.Time) {
	say := func(label, text string) {
		if text != "" {
			fmt.Fprintf(out, "  %s %s\n", s.dim(fmt.Sprintf("%-10s", label)), text)
		}
	}
	fmt.Fprintln(out, s.bold(a.ID))
	say("workflow", a.Workflow)
	say("execution", string(a.Execution))
	printQuestion(say, a)
	say("asked", fmt.Sprintf("%s, %s ago", clock(a.Asked), about(now.Sub(time.UnixMilli(a.Asked)))))
	if a.Outcome != "" {
		say("decided", decisionText(a.Outcome, a.Decision, true))
		return
	}
	say("expires", expiry(a.Expires, now))
	say("page", a.URL)
	if a.FreeText {
		say("answer", fmt.Sprintf("reprise executions approve %s --feedback TEXT", a.ID))
		return
	}
	say("answer", "reprise executions approve "+a.ID)
	say("or", fmt.Sprintf("reprise executions deny %s --feedback TEXT", a.ID))
}

// printQuestion says what a question is about.
func printQuestion(say func(label, text string), a *queue.Approval) {
	node := a.Node
	if a.RunIndex > 0 {
		node += fmt.Sprintf(" #%d", a.RunIndex+1)
	}
	say("node", node)
	say("question", strings.TrimSpace(strings.Join(strings.Fields(a.Title+" "+a.Text), " ")))
	say("tool", a.Tool)
	if len(a.Arguments) > 0 {
		say("arguments", prettyJSON(a.Arguments, strings.Repeat(" ", 13)))
	}
}

func expiry(at int64, now time.Time) string {
	if at == 0 {
		return "never"
	}
	if left := time.UnixMilli(at).Sub(now); left > 0 {
		return fmt.Sprintf("%s, in %s", clock(at), about(left))
	}
	return clock(at) + ", now"
}

// prettyJSON indents JSON whose first line stands after a label.
func prettyJSON(data json.RawMessage, indent string) string {
	var b bytes.Buffer
	if json.Indent(&b, data, indent, "  ") != nil {
		return string(data)
	}
	return b.String()
}
