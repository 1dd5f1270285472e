package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/credentials"
	"github.com/reprise-engine/reprise/internal/nodetypes"
	"github.com/reprise-engine/reprise/internal/readiness"
	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

type validateOptions struct {
	json, summary, warnings bool
	credentials, workflows  string
}

func validateWorkflowsCommand() *cobra.Command {
	var o validateOptions
	cmd := &cobra.Command{
		Use: "validate FILE|FOLDER…", Short: "Say which workflow files can run here, and what the others lack.",
		Long: `Say for each workflow file whether it can run here and what it lacks: node types and versions,
settings that are not supported, kinds of credentials, expressions and scripts that do not
compile, modules that scripts load, workflows that it calls. Nothing is run and no server is
needed. Folders are read with what is below them; files in them that are no workflows are
counted and left out.

Workflows are called by the id in their file, else by the file's name. A called one that is not
among the files or in --workflows is a warning, and an error with --workflows.

Exit codes: 0 all can run, 2 some cannot.`,
		Example: `  reprise workflows validate flow.json
  reprise workflows validate flows/ --summary
  reprise workflows validate flows/ --credentials credentials.json --workflows flows/
  reprise workflows validate flows/ --json`,
		Args: cobra.MinimumNArgs(1),
		RunE: o.run,
	}
	f := cmd.Flags()
	f.BoolVar(&o.json, "json", false, "print JSON: {files: […], notWorkflows: […], summary: {…}}")
	f.BoolVar(&o.summary, "summary", false, "print the counts and what is missing, not each file")
	f.BoolVar(&o.warnings, "warnings", false, "print also what workflows run with")
	f.StringVar(&o.credentials, "credentials", "", "credentials file; what it lacks is missing (default: not looked at)")
	f.StringVar(&o.workflows, "workflows", "", "folder of all workflows that can be called; others are missing")
	return cmd
}

// notWorkflow is a file that cannot be read as a workflow.
type notWorkflow struct {
	File  string `json:"file"`
	Error string `json:"error"`
}

func (o *validateOptions) run(cmd *cobra.Command, paths []string) error {
	files, err := filesToCheck(paths)
	if err != nil {
		return err
	}
	var others []notWorkflow
	var docs []document
	refused := false
	for _, f := range files {
		w, err := parseFile(f.path)
		if err != nil {
			others = append(others, notWorkflow{f.path, err.Error()})
			refused = refused || f.named
			continue
		}
		docs = append(docs, document{id: w.ID, file: f.path, workflow: w})
	}
	if len(docs) == 0 && len(others) == 0 {
		return fmt.Errorf("there are no .json files in %s", strings.Join(paths, ", "))
	}
	reports, err := o.check(cmd.Context(), docs)
	if err != nil {
		return err
	}
	summary := readiness.Summarize(reports)
	if o.json {
		if others == nil {
			others = []notWorkflow{}
		}
		err = printJSON(cmd.OutOrStdout(), map[string]any{"files": reports, "notWorkflows": others, "summary": summary})
	} else {
		o.print(cmd.OutOrStdout(), reports, others, summary)
	}
	if err == nil && (summary.Runs < summary.Workflows || refused) {
		return &exitError{code: service.ExitUsage}
	}
	return err
}

// foundFile is a file to check; named tells one that was asked for from one in a folder.
type foundFile struct {
	path  string
	named bool
}

// filesToCheck are the files that are named and the .json files below folders, each once.
func filesToCheck(paths []string) ([]foundFile, error) {
	var files []foundFile
	seen := map[string]bool{}
	add := func(path string, named bool) {
		if clean := filepath.Clean(path); !seen[clean] {
			seen[clean] = true
			files = append(files, foundFile{path, named})
		}
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("validate: %w", err)
		}
		if !info.IsDir() {
			add(path, true)
			continue
		}
		err = filepath.WalkDir(path, func(inner string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && inner != path && strings.HasPrefix(entry.Name(), "."):
				return filepath.SkipDir
			case !entry.IsDir() && strings.EqualFold(filepath.Ext(inner), ".json"):
				add(inner, false)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read folder %s: %w", path, err)
		}
	}
	return files, nil
}

func parseFile(path string) (*workflow.Workflow, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return workflow.Parse(data)
}

// checkers is how many workflows are checked at once; more wait for the same memory.
const checkers = 4

// check checks documents; the reports come in their order.
func (o *validateOptions) check(ctx context.Context, docs []document) ([]*readiness.Report, error) {
	evaluator, err := expression.New()
	if err != nil {
		return nil, fmt.Errorf("start the JavaScript engine: %w", err)
	}
	defer evaluator.Close()
	checker := &readiness.Checker{Registry: nodetypes.Registry(), Evaluator: evaluator, Complete: o.workflows != ""}
	if o.credentials != "" {
		store, err := credentials.Load(o.credentials)
		if err != nil {
			return nil, fmt.Errorf("--credentials: %w", err)
		}
		checker.HasCredential = func(kind string, ref workflow.CredentialRef) bool {
			_, err := store.Get(ctx, kind, ref)
			return err == nil
		}
	}
	callable, err := readWorkflowDir(o.workflows, zap.NewNop())
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, d := range append(callable, docs...) {
		known[d.id] = true
		known[strings.TrimSuffix(filepath.Base(d.file), filepath.Ext(d.file))] = true
	}
	checker.HasWorkflow = func(id string) bool { return known[id] }

	reports := make([]*readiness.Report, len(docs))
	failures := make([]error, len(docs))
	next := make(chan int)
	var all sync.WaitGroup
	for range checkers {
		all.Go(func() {
			for i := range next {
				if reports[i], failures[i] = checker.Check(ctx, docs[i].workflow); failures[i] == nil {
					reports[i].File = docs[i].file
				}
			}
		})
	}
	for i := range docs {
		next <- i
	}
	close(next)
	all.Wait()
	return reports, errors.Join(failures...)
}

func (o *validateOptions) print(out io.Writer, reports []*readiness.Report, others []notWorkflow, summary readiness.Summary) {
	s := styleFor(out)
	if !o.summary {
		for _, r := range reports {
			o.printReport(out, s, r)
		}
		for _, other := range others {
			fmt.Fprintf(out, "%s  %s\n    %s\n", s.dim("not a workflow"), other.File, other.Error)
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "%s of %d workflows can run here", s.bold(fmt.Sprint(summary.Runs)), summary.Workflows)
	if len(others) > 0 {
		fmt.Fprintf(out, "; %d files are no workflows", len(others))
	}
	fmt.Fprintln(out)
	if len(summary.Missing) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s\n", s.bold("Missing"))
	fmt.Fprintln(out, s.dim("workflows  only this  what"))
	for _, m := range summary.Missing {
		fmt.Fprintf(out, "%9d  %9d  %s: %s\n", m.Workflows, m.Alone, m.Kind, shorten(m.What, 120))
	}
}

func (o *validateOptions) printReport(out io.Writer, s style, r *readiness.Report) {
	state := s.green("can run       ")
	if !r.Runs {
		state = s.red("cannot run    ")
	}
	errors := 0
	for _, f := range r.Findings {
		if f.Severity == workflow.SeverityError {
			errors++
		}
	}
	fmt.Fprintf(out, "%s  %s", state, r.File)
	if warnings := len(r.Findings) - errors; warnings > 0 && !o.warnings {
		fmt.Fprint(out, s.dim(fmt.Sprintf("  (%d warnings)", warnings)))
	}
	fmt.Fprintln(out)
	for _, f := range r.Findings {
		switch {
		case f.Severity == workflow.SeverityError:
			fmt.Fprintf(out, "    %s\n", f.String())
		case o.warnings:
			fmt.Fprintf(out, "    %s %s\n", s.yellow("warning:"), f.String())
		}
	}
}
