package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/table"
)

func tablesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "tables", Aliases: []string{"table"}, Short: "Data tables: rows that workflows keep, from and to files.",
		Long: `Data tables are what the Data Table node reads and writes: rows that are kept between
executions, in Redis. A table is named by its name or its id.`,
	}
	cmd.AddCommand(listTablesCommand(), createTableCommand(), importTableCommand(), exportTableCommand(), dropTablesCommand())
	return cmd
}

// askTables fulfils a request. What is refused is wrong usage, and says what to do.
func askTables(ctx context.Context, conn *queue.Conn, r *table.Request) (*table.Answer, error) {
	if r.Writes() && r.Key == "" {
		r.Key = uuid.NewString()
	}
	answer, err := conn.ApplyTable(ctx, r)
	if err == nil {
		for _, result := range answer.Results {
			if result.Error != nil {
				return answer, refusedTable(result.Error)
			}
		}
	}
	if refused := table.AsError(err); refused != nil {
		return nil, refusedTable(refused)
	}
	return answer, err
}

func refusedTable(e *table.Error) error {
	text := e.Message
	if e.Hint != "" {
		text += "\n" + e.Hint
	}
	return &exitError{code: service.ExitUsage, err: errors.New(text)}
}

func named(arg string) table.Ref { return table.Ref{ID: arg, Name: arg} }

func listTablesCommand() *cobra.Command {
	var s servers
	var asOutput string
	cmd := &cobra.Command{
		Use: "list", Short: "List the data tables.", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := output(asOutput)
			if err := o.set(outputText, outputJSON); err != nil {
				return err
			}
			return withConn(cmd, &s, func(ctx context.Context, conn *queue.Conn) error {
				answer, err := askTables(ctx, conn, &table.Request{Do: table.List})
				if err != nil {
					return err
				}
				out := cmd.OutOrStdout()
				if o == outputJSON {
					if answer.Tables == nil {
						answer.Tables = []table.Table{} // an empty list, not null
					}
					return printJSON(out, answer.Tables)
				}
				fmt.Fprintln(out, styleFor(out).dim(fmt.Sprintf("%-16s  %-19s  %-24s  %s", "ID", "CREATED", "NAME", "COLUMNS")))
				for _, t := range answer.Tables {
					columns := make([]string, len(t.Columns))
					for i, c := range t.Columns {
						columns[i] = c.Name + ":" + c.Type
					}
					fmt.Fprintf(out, "%-16s  %-19s  %-24s  %s\n", t.ID, clock(t.CreatedAt), t.Name, strings.Join(columns, " "))
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&asOutput, "output", string(outputText), "text or json")
	s.natsFlag(cmd, defaultNATS, "NATS server")
	return cmd
}

// parseColumns reads name:type.
func parseColumns(texts []string) ([]table.Column, error) {
	columns := make([]table.Column, len(texts))
	for i, text := range texts {
		name, kind, typed := strings.Cut(text, ":")
		if !typed {
			kind = table.String
		}
		columns[i] = table.Column{Name: name, Type: kind}
	}
	if err := table.CheckColumns(columns); err != nil {
		return nil, refusedTable(err)
	}
	return columns, nil
}

const columnHelp = "a column, as name:type; the types are string, number, boolean and date"

func createTableCommand() *cobra.Command {
	var s servers
	var columns []string
	var reuse bool
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Create a data table.",
		Long:    `Create a data table. Each has the columns id, createdAt and updatedAt besides.`,
		Example: `  reprise tables create customers --column email:string --column orders:number --column vip:boolean`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			parsed, err := parseColumns(columns)
			if err != nil {
				return err
			}
			return withConn(cmd, &s, func(ctx context.Context, conn *queue.Conn) error {
				answer, err := askTables(ctx, conn, &table.Request{Do: table.Create, Name: args[0], Columns: parsed, Reuse: reuse})
				if err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), answer.Table.ID, answer.Table.Name)
				return nil
			})
		},
	}
	cmd.Flags().StringArrayVar(&columns, "column", nil, columnHelp)
	cmd.Flags().BoolVar(&reuse, "if-not-exists", false, "leave a table of this name as it is")
	s.natsFlag(cmd, defaultNATS, "NATS server")
	return cmd
}

func dropTablesCommand() *cobra.Command {
	var s servers
	cmd := &cobra.Command{
		Use: "drop TABLE…", Short: "Remove data tables with their rows, for good.", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withConn(cmd, &s, func(ctx context.Context, conn *queue.Conn) error {
				failures := failures{cmd: cmd}
				for _, arg := range args {
					answer, err := askTables(ctx, conn, &table.Request{Do: table.Drop, Table: named(arg)})
					if err != nil {
						failures.add(err)
						continue
					}
					fmt.Fprintln(cmd.OutOrStdout(), "dropped", answer.Table.ID, answer.Table.Name)
				}
				return failures.err()
			})
		},
	}
	s.natsFlag(cmd, defaultNATS, "NATS server")
	return cmd
}

// exportPage is how many rows are asked for at once; importPage how many are sent.
const (
	exportPage = 2000
	importPage = 500
)

func exportTableCommand() *cobra.Command {
	var s servers
	var format, file string
	cmd := &cobra.Command{
		Use: "export TABLE", Short: "Write the rows of a data table, as CSV or JSON.",
		Long: `Write the rows of a data table, as CSV, as a JSON list or as JSON lines (jsonl). Rows that are written meanwhile may
be in it or not.`,
		Example: `  reprise tables export customers > customers.csv
  reprise tables export customers --file customers.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			format, err := tableFormat(format, file)
			if err != nil {
				return err
			}
			return withConn(cmd, &s, func(ctx context.Context, conn *queue.Conn) error {
				t, rows, err := allRows(ctx, conn, named(args[0]))
				if err != nil {
					return err
				}
				if file == "" {
					return writeRows(cmd.OutOrStdout(), format, t, rows)
				}
				out, err := os.Create(file)
				if err != nil {
					return err
				}
				if err := errors.Join(writeRows(out, format, t, rows), out.Close()); err != nil {
					return fmt.Errorf("write %s: %w", file, err)
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "%d rows written to %s\n", len(rows), file)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", "", "csv, json or jsonl; by default what the file's name says, or csv")
	cmd.Flags().StringVar(&file, "file", "", "file to write; by default it is printed")
	s.natsFlag(cmd, defaultNATS, "NATS server")
	return cmd
}

func importTableCommand() *cobra.Command {
	var s servers
	var format string
	var columns []string
	cmd := &cobra.Command{
		Use: "import TABLE FILE", Short: "Insert the rows of a file, CSV or JSON, into a data table.",
		Long: `Insert the rows of a file into a data table, which is created when there is none of this name. Then
its columns are those of the file: numbers and booleans where all values are, else texts; --column
says it otherwise. A CSV file begins with the names of its columns; a JSON file is a list of objects,
and one of JSON lines (jsonl) has an object on each line.
The columns id, createdAt and updatedAt of a file are left out: the table has its own.

"-" reads standard input. Rows that were inserted before an error stay.`,
		Example: `  reprise tables import customers customers.csv --column since:date`,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			format, err := tableFormat(format, args[1])
			if err != nil {
				return err
			}
			typed, err := parseColumns(columns)
			if err != nil {
				return err
			}
			var data []byte
			if args[1] == "-" {
				data, err = io.ReadAll(cmd.InOrStdin())
			} else {
				data, err = os.ReadFile(args[1])
			}
			if err != nil {
				return fmt.Errorf("read rows: %w", err)
			}
			content, err := readRows(data, format, typed)
			if err != nil {
				return fmt.Errorf("%s: %w", args[1], err)
			}
			return withConn(cmd, &s, func(ctx context.Context, conn *queue.Conn) error {
				return importRows(ctx, cmd, conn, args[0], content)
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", "", "csv, json or jsonl; by default what the file's name says, or csv")
	cmd.Flags().StringArrayVar(&columns, "column", nil, columnHelp+", for a table that is created")
	s.natsFlag(cmd, defaultNATS, "NATS server")
	return cmd
}

func importRows(ctx context.Context, cmd *cobra.Command, conn *queue.Conn, name string, content *tableFile) error {
	_, err := conn.ApplyTable(ctx, &table.Request{Do: table.Rows, Table: named(name)})
	if refused := table.AsError(err); refused != nil && refused.Kind == table.NotFound {
		_, err = askTables(ctx, conn, &table.Request{Do: table.Create, Name: name, Columns: content.columns, Reuse: true})
	}
	if err != nil {
		return err
	}
	for done := 0; done < len(content.rows); done += importPage {
		r := &table.Request{Do: table.Rows, Table: named(name)}
		for _, row := range content.rows[done:min(done+importPage, len(content.rows))] {
			r.Operations = append(r.Operations, table.Operation{Do: table.Insert, Values: row, Quiet: true})
		}
		if answer, err := askTables(ctx, conn, r); err != nil {
			if answer != nil {
				done += len(answer.Results) - 1 // the last one failed
			}
			return fmt.Errorf("row %d, after %d were inserted: %w", done+1, done, err)
		}
	}
	fmt.Fprintf(cmd.OutOrStdout(), "inserted %d rows into %s\n", len(content.rows), name)
	return nil
}
