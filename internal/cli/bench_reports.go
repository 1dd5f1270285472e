package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/reprise-engine/reprise/internal/bench"
)

func benchListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Name the scenarios.", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "SCENARIO\tSIZE\tTAKES\tMEASURES")
			for _, s := range bench.Catalog() {
				size := ""
				if s.Executions > 0 {
					size = fmt.Sprint(s.Executions)
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.Name, size, s.Takes, s.About)
			}
			return w.Flush()
		},
	}
}

func benchCompareCommand() *cobra.Command {
	var asOutput string
	cmd := &cobra.Command{
		Use: "compare FIRST.json SECOND.json", Short: "Print two reports of a scenario and their ratio.",
		Long: `Print the figures of two reports of the same scenario, which "reprise bench --output json" wrote,
and for each the second by the first. It says when the machine was not the same, or
not as fast.`,
		Example: `  reprise bench compare before.json after.json
  reprise bench compare before.json after.json --output json`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return compareReports(cmd, args[0], args[1], asOutput) },
	}
	cmd.Flags().StringVar(&asOutput, "output", string(outputText), "text or json")
	return cmd
}

func compareReports(cmd *cobra.Command, first, second, asOutput string) error {
	o := output(asOutput)
	if err := o.set(outputText, outputJSON); err != nil {
		return err
	}
	a, err := bench.Read(first)
	if err != nil {
		return err
	}
	b, err := bench.Read(second)
	if err != nil {
		return err
	}
	c, err := bench.Compare(a, b)
	if err != nil {
		return err
	}
	if o == outputJSON {
		return printJSON(cmd.OutOrStdout(), c)
	}
	c.Print(cmd.OutOrStdout())
	return nil
}

func benchTablesCommand() *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use: "tables DOCUMENT.md", Short: "Put the tables of reports into a document.",
		Long: `Put the tables of reports, which "reprise bench --output json" wrote, into a Markdown document:
between lines

  <!-- bench: performance/burst.json -->
  <!-- bench: end -->

where the name is that of a report, relative to the document. What is between them is replaced;
a report that does not exist yet is said to be not measured.`,
		Example: `  reprise bench --scenario burst --output json > docs/performance/burst.json
  reprise bench tables docs/performance.md`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			before, err := os.ReadFile(args[0])
			if err != nil {
				return fmt.Errorf("read document: %w", err)
			}
			after, err := bench.FillTables(before, func(name string) (bench.Result, error) {
				r, err := bench.Read(filepath.Join(filepath.Dir(args[0]), filepath.FromSlash(name)))
				if errors.Is(err, fs.ErrNotExist) {
					return nil, nil
				}
				return r, err
			})
			switch {
			case err != nil:
				return err
			case bytes.Equal(before, after):
				return nil
			case check:
				return fmt.Errorf("%s is not up to date: run reprise bench tables %s", args[0], args[0])
			}
			if err := os.WriteFile(args[0], after, 0o644); err != nil {
				return fmt.Errorf("write document: %w", err)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "change nothing, and fail when the document is not up to date")
	return cmd
}

func benchChildCommand() *cobra.Command {
	return &cobra.Command{
		Use: "child", Short: "Be a process of a bench.", Args: cobra.ExactArgs(1), Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return bench.Child(cmd.Context(), args[0], cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}
