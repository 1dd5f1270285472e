package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

func importWorkflowsCommand() *cobra.Command {
	var s servers
	var activate bool
	var asOutput string
	cmd := &cobra.Command{
		Use: "import FILE|FOLDER…", Short: "Store workflows from files and folders, as n8n exports them.",
		Long: `Store workflows from files, and from the *.json files of folders and of those inside. A file holds
one workflow or a list of them, as "n8n export:workflow" writes both. A workflow without an id is stored
under the name of its file.

What was stored under an id is replaced; whether it is active stays as it was, whatever "active" in the
file says, unless --activate is given. A workflow that is refused does not stop the others; then the exit
code is 2.`,
		Example: `  reprise workflows import backup/
  reprise workflows import all.json --activate`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, paths []string) error {
			o := output(asOutput)
			if err := o.set(outputText, outputJSON); err != nil {
				return err
			}
			failures := failures{cmd: cmd}
			docs, err := importDocuments(paths, failures.add)
			if err != nil {
				return err
			}
			return withConn(cmd, &s, func(ctx context.Context, conn *queue.Conn) error {
				stored := []*queue.StoredWorkflow{}
				for _, d := range docs {
					w, err := conn.PutWorkflow(ctx, queue.WorkflowPutRequest{ID: d.id, Document: d.data})
					if err == nil && activate && !w.Active {
						var active *queue.StoredWorkflow
						if active, err = conn.ActivateWorkflow(ctx, w.ID, true); active != nil {
							w = active
						}
					}
					if err != nil {
						failures.add(fmt.Errorf("%s: %w", d.file, err))
					}
					if w == nil {
						continue
					}
					stored = append(stored, w)
					if o == outputText {
						fmt.Fprintln(cmd.OutOrStdout(), "stored", w.ID, w.Name+activeNote(w))
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
	cmd.Flags().BoolVar(&activate, "activate", false, "have their triggers begin them")
	cmd.Flags().StringVar(&asOutput, "output", string(outputText), "text or json")
	s.natsFlag(cmd, defaultNATS, "NATS server")
	return cmd
}

func activeNote(w *queue.StoredWorkflow) string {
	if w.Active {
		return " (active)"
	}
	return ""
}

// importDocuments reads workflows from files and folders. refuse is told what cannot be read as
// one; an error is something that cannot be read at all, or an id that is there twice.
func importDocuments(paths []string, refuse func(error)) ([]document, error) {
	var docs []document
	from := map[string]string{}
	for _, path := range paths {
		files, err := workflowFiles(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			found, err := documentsOf(file, refuse)
			if err != nil {
				return nil, err
			}
			for _, d := range found {
				if other, twice := from[d.id]; twice {
					return nil, fmt.Errorf("%s and %s have the same id %q", other, d.file, d.id)
				}
				from[d.id] = d.file
				docs = append(docs, d)
			}
		}
	}
	if len(docs) == 0 {
		return nil, fmt.Errorf("no workflow was found in %s", strings.Join(paths, ", "))
	}
	return docs, nil
}

// workflowFiles are a file itself, or the *.json files of a folder, in order.
func workflowFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read workflows: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var files []string
	err = filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.EqualFold(filepath.Ext(file), ".json") {
			files = append(files, file)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read workflows: %w", err)
	}
	return files, nil
}

func documentsOf(file string, refuse func(error)) ([]document, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read workflow: %w", err)
	}
	texts := []json.RawMessage{data}
	isList := bytes.HasPrefix(bytes.TrimSpace(data), []byte("["))
	if isList {
		if err := json.Unmarshal(data, &texts); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	var docs []document
	for i, text := range texts {
		name := file
		if isList {
			name = fmt.Sprintf("%s, workflow %d", file, i+1)
		}
		w, err := workflow.Parse(text)
		if err != nil {
			refuse(fmt.Errorf("%s: %w", name, err))
			continue
		}
		d := document{id: w.ID, file: name, data: w.Raw, workflow: w}
		if d.id == "" && !isList {
			d.id = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		}
		if d.id == "" {
			refuse(fmt.Errorf("%s has no id", name))
			continue
		}
		docs = append(docs, d)
	}
	return docs, nil
}

func activateWorkflowCommand(name string, active bool) *cobra.Command {
	var s servers
	short := "Have the triggers of stored workflows begin them: webhooks, schedules, forms, chats."
	if !active {
		short = "Have the triggers of stored workflows begin them no longer; executions go on."
	}
	cmd := &cobra.Command{
		Use: name + " ID…", Short: short, Example: "  reprise workflows " + name + " orders", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, ids []string) error {
			return withConn(cmd, &s, func(ctx context.Context, conn *queue.Conn) error {
				failures := failures{cmd: cmd}
				for _, id := range ids {
					if _, err := conn.ActivateWorkflow(ctx, id, active); err != nil {
						failures.add(noWorkflow(id, err))
						continue
					}
					fmt.Fprintln(cmd.OutOrStdout(), name+"d", id)
				}
				return failures.err()
			})
		},
	}
	s.natsFlag(cmd, defaultNATS, "NATS server")
	return cmd
}

func exportWorkflowsCommand() *cobra.Command {
	var s servers
	var dir string
	cmd := &cobra.Command{
		Use: "export [ID…]", Short: "Write stored workflows in n8n's export format, all of them without ids.",
		Long: `Write stored workflows in n8n's export format: a list on standard output, or with --dir one file each.
The fields id and active are those of the store.`,
		Example: `  reprise workflows export > all.json
  reprise workflows export orders --dir backup`,
		RunE: func(cmd *cobra.Command, ids []string) error {
			return withConn(cmd, &s, func(ctx context.Context, conn *queue.Conn) error {
				if len(ids) == 0 {
					all, err := conn.Workflows(ctx)
					if err != nil {
						return err
					}
					for _, w := range all {
						ids = append(ids, w.ID)
					}
				}
				failures := failures{cmd: cmd}
				list := []json.RawMessage{}
				for _, id := range ids {
					w, err := conn.Workflow(ctx, id)
					if err != nil {
						failures.add(noWorkflow(id, err))
						continue
					}
					text, err := exported(w)
					if err != nil {
						failures.add(fmt.Errorf("workflow %s: %w", id, err))
						continue
					}
					list = append(list, text)
					if dir != "" {
						if err := writeExport(dir, id, text); err != nil {
							return err
						}
					}
				}
				if dir == "" {
					if err := printJSON(cmd.OutOrStdout(), list); err != nil {
						return err
					}
				}
				return failures.err()
			})
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "folder to write one file for each workflow to")
	s.natsFlag(cmd, defaultNATS, "NATS server")
	return cmd
}

// exported is a document with what the store says of it.
func exported(w *queue.StoredWorkflow) (json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(w.Document, &fields); err != nil {
		return nil, fmt.Errorf("read the stored document: %w", err)
	}
	id, err := json.Marshal(w.ID)
	if err != nil {
		return nil, fmt.Errorf("write the id: %w", err)
	}
	fields["id"], fields["active"] = id, json.RawMessage("false")
	if w.Active {
		fields["active"] = json.RawMessage("true")
	}
	text, err := json.MarshalIndent(fields, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the document: %w", err)
	}
	return text, nil
}

// writeExport writes one file. An id is any text, so what a file's name should not hold is
// replaced; two ids never share a file.
func writeExport(dir, id string, text []byte) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("--dir: %w", err)
	}
	name := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, id)
	if name != id {
		name = fmt.Sprintf("%.80s-%x", name, id)
		name = name[:min(len(name), 200)]
	}
	file, err := os.OpenFile(filepath.Join(dir, name+".json"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("--dir: %w", err)
	}
	_, err = file.Write(append(text, '\n'))
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("--dir: %w", err)
	}
	return nil
}
