package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

func executionsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "executions", Aliases: []string{"execution", "exec"},
		Short: "Look at executions, answer what they wait for, cancel and retry them.",
	}
	cmd.AddCommand(listCommand(), showCommand(), watchCommand(), cancelCommand(), retryCommand(), resumeCommand(),
		approvalsCommand(), approvalCommand(), approveCommand(), denyCommand())
	return cmd
}

// withConn runs f with a connection to NATS.
func withConn(cmd *cobra.Command, s *servers, f func(ctx context.Context, conn *queue.Conn) error) error {
	conn, err := connect(cmd.Context(), s.nats)
	if err != nil {
		return err
	}
	defer conn.Close()
	return f(cmd.Context(), conn)
}

func listCommand() *cobra.Command {
	var (
		s                            servers
		status, workflowID, asOutput string
		limit                        int
	)
	cmd := &cobra.Command{
		Use: "list", Short: "List executions, newest first.", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := output(asOutput)
			if err := o.set(outputText, outputJSON); err != nil {
				return err
			}
			return withConn(cmd, &s, func(ctx context.Context, conn *queue.Conn) error {
				answer, err := conn.List(ctx, queue.ListRequest{Status: engine.Status(status), WorkflowID: workflowID, Limit: limit})
				if err != nil {
					return err
				}
				out, style := cmd.OutOrStdout(), styleFor(cmd.OutOrStdout())
				if o == outputJSON {
					return printJSON(out, answer)
				}
				fmt.Fprintf(out, "%s\n", style.dim(fmt.Sprintf("%-36s  %-8s  %-19s  %9s  %s", "ID", "STATUS", "STARTED", "DURATION", "WORKFLOW")))
				for _, x := range answer.Executions {
					duration := ""
					if x.StoppedAt > 0 {
						duration = (time.Duration(x.StoppedAt-x.StartedAt) * time.Millisecond).String()
					}
					fmt.Fprintf(out, "%-36s  %-8s  %-19s  %9s  %s\n", x.ID, x.Status,
						time.UnixMilli(x.StartedAt).Format(time.DateTime), duration, x.WorkflowName)
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&status, "status", "", "only executions of this status (new, running, waiting, success, error, canceled)")
	cmd.Flags().StringVar(&workflowID, "workflow-id", "", "only executions of the workflow with this id")
	cmd.Flags().IntVar(&limit, "limit", 50, "greatest number")
	cmd.Flags().StringVar(&asOutput, "output", string(outputText), "text or json")
	s.natsFlag(cmd, defaultNATS, "NATS server")
	return cmd
}

func showCommand() *cobra.Command {
	var s servers
	var asOutput string
	cmd := &cobra.Command{
		Use: "show ID", Short: "Draw an execution: what ran, what tools were asked and answered.", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o := output(asOutput)
			if err := o.set(outputText, outputJSON); err != nil {
				return err
			}
			return withConn(cmd, &s, func(ctx context.Context, conn *queue.Conn) error {
				x, err := conn.Get(ctx, engine.ExecutionID(args[0]), true)
				if err != nil {
					return err
				}
				if o == outputJSON {
					return printJSON(cmd.OutOrStdout(), x)
				}
				data, err := runDataOf(x)
				if err != nil {
					return err
				}
				printExecution(cmd.OutOrStdout(), styleFor(cmd.OutOrStdout()), x, data)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&asOutput, "output", string(outputText), "text or json (n8n's run data)")
	s.natsFlag(cmd, defaultNATS, "NATS server")
	return cmd
}

func watchCommand() *cobra.Command {
	var s servers
	var asOutput string
	cmd := &cobra.Command{
		Use: "watch [ID]", Short: "Print what executions do as it happens, until Ctrl-C, or until the one that is named is over.", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o := output(asOutput)
			if err := o.set(outputText, outputJSON); err != nil {
				return err
			}
			id := engine.ExecutionID("")
			if len(args) == 1 {
				id = engine.ExecutionID(args[0])
			}
			return withConn(cmd, &s, func(ctx context.Context, conn *queue.Conn) error {
				over := make(chan struct{}, 1)
				out := cmd.OutOrStdout()
				stop, err := conn.WatchLive(id, func(l queue.Live) {
					if o == outputJSON {
						_ = json.NewEncoder(out).Encode(l)
					} else {
						fmt.Fprintln(out, watchLine(l.Execution, l.Live))
					}
					if id != "" && l.Kind == engine.LiveExecutionFinished && l.Status.Finished() {
						select {
						case over <- struct{}{}:
						default:
						}
					}
				})
				if err != nil {
					return err
				}
				defer stop()
				if id != "" {
					x, err := conn.Get(ctx, id, false)
					if err != nil {
						return err
					}
					if x.Status.Finished() {
						fmt.Fprintf(cmd.ErrOrStderr(), "%s is over: %s\n", id, x.Status)
						return nil
					}
				}
				select {
				case <-over:
				case <-ctx.Done():
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&asOutput, "output", string(outputText), "text or json")
	s.natsFlag(cmd, defaultNATS, "NATS server")
	return cmd
}

func watchLine(id engine.ExecutionID, l engine.Live) string {
	at := time.UnixMilli(l.At).Format("15:04:05.000")
	switch l.Kind {
	case engine.LiveNodeStarted:
		return fmt.Sprintf("%s  %s  started   %s", at, id, l.Node)
	case engine.LiveNodeFinished:
		text := fmt.Sprintf("%s  %s  %-8s  %s", at, id, l.Status, l.Node)
		if l.Error != "" {
			text += ": " + shorten(l.Error, 120)
		}
		return text
	case engine.LiveExecutionFinished:
		if !l.Status.Finished() {
			return fmt.Sprintf("%s  %s  waits", at, id)
		}
		return fmt.Sprintf("%s  %s  finished: %s", at, id, l.Status)
	case engine.LiveExecutionResumed:
		return fmt.Sprintf("%s  %s  resumed", at, id)
	}
	return fmt.Sprintf("%s  %s  begins", at, id)
}

func cancelCommand() *cobra.Command {
	var s servers
	cmd := &cobra.Command{
		Use: "cancel ID…", Short: "Cancel executions for good; their running tools are stopped.", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withConn(cmd, &s, func(ctx context.Context, conn *queue.Conn) error {
				for _, id := range args {
					if err := conn.Cancel(ctx, engine.ExecutionID(id), "canceled on the command line"); err != nil {
						return err
					}
					fmt.Fprintln(cmd.OutOrStdout(), "canceled", id)
				}
				return nil
			})
		},
	}
	s.natsFlag(cmd, defaultNATS, "NATS server")
	return cmd
}
