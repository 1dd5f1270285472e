package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// document is a workflow file and the id that it is stored under.
type document struct {
	id, file string
	data     []byte
	workflow *workflow.Workflow
}

// readWorkflowDir reads the workflows of a directory: *.json files. What is no
// workflow is left out and told to the log, and so are different ones of the same id:
// which of them is meant cannot be told, and maybe none is called.
func readWorkflowDir(dir string, log *zap.Logger) ([]document, error) {
	if dir == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("--workflows: %w", err)
	}
	var docs []document
	byID := map[string]document{}
	unclear := map[string]bool{}
	for _, entry := range entries {
		if entry.IsDir() || !strings.EqualFold(filepath.Ext(entry.Name()), ".json") {
			continue
		}
		file := filepath.Join(dir, entry.Name())
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("--workflows: %w", err)
		}
		w, err := workflow.Parse(data)
		if err != nil {
			log.Info("not a workflow, left out", zap.String("file", file), zap.Error(err))
			continue
		}
		d := document{id: w.ID, file: file, data: w.Raw, workflow: w}
		if d.id == "" {
			d.id = strings.TrimSuffix(entry.Name(), filepath.Ext(entry.Name()))
		}
		if other, twice := byID[d.id]; twice {
			if other.workflow.Hash != w.Hash {
				unclear[d.id] = true
				log.Warn("workflows with the same id, none of them can be called", zap.String("id", d.id),
					zap.String("file", other.file), zap.String("other", file))
			}
			continue
		}
		byID[d.id] = d
		docs = append(docs, d)
	}
	return slices.DeleteFunc(docs, func(d document) bool { return unclear[d.id] }), nil
}

// putDocuments stores workflows. One that the coordinators refuse is told by warn
// and left out: it may be one that is not needed.
func putDocuments(ctx context.Context, conn *queue.Conn, docs []document, warn func(string)) error {
	for _, d := range docs {
		_, err := conn.PutWorkflow(ctx, queue.WorkflowPutRequest{ID: d.id, Document: d.data})
		problem := (*queue.Problem)(nil)
		if errors.As(err, &problem) && exitCode(err) == service.ExitUsage {
			warn(fmt.Sprintf("%s cannot be called: %v", d.file, err))
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", d.file, err)
		}
	}
	return nil
}
