package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

func workflowsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "workflows", Aliases: []string{"workflow"},
		Short: "Store workflows under their ids, so that others call them, they can be submitted by id, and their triggers begin them.",
	}
	cmd.AddCommand(putWorkflowCommand(), importWorkflowsCommand(), listWorkflowsCommand(), getWorkflowCommand(), exportWorkflowsCommand(),
		activateWorkflowCommand("activate", true), activateWorkflowCommand("deactivate", false), deleteWorkflowCommand(), validateWorkflowsCommand())
	return cmd
}

func putWorkflowCommand() *cobra.Command {
	var s servers
	var id, asOutput string
	cmd := &cobra.Command{
		Use: "put FILE…", Short: "Store workflow files under the ids in them; what was stored there is replaced.",
		Long: `Store workflow files under the ids in them; what was stored under an id is replaced. Executions
that run go on with the document they began with.

Nothing is stored when a file cannot be read. A file that the coordinators refuse does not
stop the others; then the exit code is 2.`,
		Example: `  reprise workflows put flows/*.json
  reprise workflows put flow.json --id orders`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			o := output(asOutput)
			if err := o.set(outputText, outputJSON); err != nil {
				return err
			}
			if id != "" && len(files) > 1 {
				return errors.New("--id names one workflow: give one file")
			}
			docs, err := readDocuments(files, id)
			if err != nil {
				return err
			}
			return withConn(cmd, &s, func(ctx context.Context, conn *queue.Conn) error {
				stored := []*queue.StoredWorkflow{}
				failures := failures{cmd: cmd}
				for _, d := range docs {
					w, err := conn.PutWorkflow(ctx, queue.WorkflowPutRequest{ID: d.id, Document: d.data})
					if err != nil {
						failures.add(fmt.Errorf("%s: %w", d.file, err))
						continue
					}
					stored = append(stored, w)
					if o == outputText {
						fmt.Fprintln(cmd.OutOrStdout(), "stored", w.ID, w.Name)
					}
				}
				if o == outputJSON {
					if err := printJSON(cmd.OutOrStdout(), stored); err != nil {
						return err
					}
				}
				return failures.err()
			})
		},
	}
	cmd.Flags().StringVar(&id, "id", "", "id to store one file under, instead of the one in it")
	cmd.Flags().StringVar(&asOutput, "output", string(outputText), "text or json")
	s.natsFlag(cmd, defaultNATS, "NATS server")
	return cmd
}

// readDocuments reads workflow files that are to be stored; id, when not empty, is
// the one of the only file.
func readDocuments(files []string, id string) ([]document, error) {
	docs := make([]document, 0, len(files))
	byID := map[string]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read workflow: %w", err)
		}
		w, err := workflow.Parse(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		d := document{id: id, file: file, data: w.Raw, workflow: w}
		if d.id == "" {
			d.id = w.ID
		}
		if d.id == "" {
			return nil, fmt.Errorf("%s has no id: give it one with --id, one file at a time", file)
		}
		if other, twice := byID[d.id]; twice {
			return nil, fmt.Errorf("%s and %s have the same id %q", other, file, d.id)
		}
		byID[d.id] = file
		docs = append(docs, d)
	}
	return docs, nil
}

func listWorkflowsCommand() *cobra.Command {
	var s servers
	var asOutput string
	cmd := &cobra.Command{
		Use: "list", Short: "List the stored workflows.", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := output(asOutput)
			if err := o.set(outputText, outputJSON); err != nil {
				return err
			}
			return withConn(cmd, &s, func(ctx context.Context, conn *queue.Conn) error {
				all, err := conn.Workflows(ctx)
				if err != nil {
					return err
				}
				out, style := cmd.OutOrStdout(), styleFor(cmd.OutOrStdout())
				if o == outputJSON {
					if all == nil {
						all = []queue.StoredWorkflow{} // an empty list, not null
					}
					return printJSON(out, all)
				}
				fmt.Fprintln(out, style.dim(fmt.Sprintf("%-24s  %-19s  %-7s  %s", "ID", "STORED", "ACTIVE", "NAME")))
				for _, w := range all {
					active := ""
					if w.Active {
						active = "yes"
					}
					fmt.Fprintf(out, "%-24s  %-19s  %-7s  %s\n", w.ID, clock(w.UpdatedAt), active, w.Name)
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&asOutput, "output", string(outputText), "text or json")
	s.natsFlag(cmd, defaultNATS, "NATS server")
	return cmd
}

func getWorkflowCommand() *cobra.Command {
	var s servers
	var asOutput string
	cmd := &cobra.Command{
		Use: "get ID", Short: "Print a stored workflow.",
		Example: `  reprise workflows get orders > orders.json`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o := output(asOutput)
			if err := o.set(outputText, outputJSON); err != nil {
				return err
			}
			return withConn(cmd, &s, func(ctx context.Context, conn *queue.Conn) error {
				w, err := conn.Workflow(ctx, args[0])
				if err != nil {
					return noWorkflow(args[0], err)
				}
				if o == outputJSON {
					return printJSON(cmd.OutOrStdout(), w)
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), string(w.Document))
				return err
			})
		},
	}
	cmd.Flags().StringVar(&asOutput, "output", string(outputText), "text (the document) or json (with when it was stored)")
	s.natsFlag(cmd, defaultNATS, "NATS server")
	return cmd
}

func deleteWorkflowCommand() *cobra.Command {
	var s servers
	cmd := &cobra.Command{
		Use: "delete ID…", Short: "Forget stored workflows; executions of them go on.",
		Example: `  reprise workflows delete orders`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withConn(cmd, &s, func(ctx context.Context, conn *queue.Conn) error {
				failures := failures{cmd: cmd}
				for _, id := range args {
					if err := conn.DeleteWorkflow(ctx, id); err != nil {
						failures.add(noWorkflow(id, err))
						continue
					}
					fmt.Fprintln(cmd.OutOrStdout(), "deleted", id)
				}
				return failures.err()
			})
		},
	}
	s.natsFlag(cmd, defaultNATS, "NATS server")
	return cmd
}

// noWorkflow says how to find the right id.
func noWorkflow(id string, err error) error {
	problem := (*queue.Problem)(nil)
	if errors.As(err, &problem) && problem.Code == queue.CodeNotFound {
		return &exitError{service.ExitUsage, fmt.Errorf("no workflow is stored under the id %q; \"reprise workflows list\" lists them", id)}
	}
	return err
}
