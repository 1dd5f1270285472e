package coordinator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/failpoint"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// noErrorWorkflow is what n8n's editor writes into settings.errorWorkflow for none.
const noErrorWorkflow = "DEFAULT"

// errorWorkflow is the errand that starts the workflow which is to hear of this
// execution's failure: the one its settings name, else its own error trigger. nil
// when there is none. Runs by hand start none, as in n8n, nor does the failure of an
// error workflow, so that two of them cannot keep each other going.
func (x *execution) errorWorkflow() errand {
	meta := &x.state.Meta
	if meta.Status != engine.StatusError || meta.Error == nil {
		return nil
	}
	switch meta.Mode {
	case "", "manual", "evaluation", modeError:
		return nil
	}
	w := x.program.workflow
	if id := w.Settings.ErrorWorkflow; id != "" && id != noErrorWorkflow {
		return x.startErrorWorkflow(id, nil)
	}
	if enabled(w, errorTrigger) != nil {
		return x.startErrorWorkflow(meta.WorkflowID, x.program)
	}
	return nil
}

// startErrorWorkflow starts a workflow at its error trigger; p is nil for one that is
// to be looked up. What is wrong with that workflow is logged: there is nobody to tell.
func (x *execution) startErrorWorkflow(workflowID string, p *program) errand {
	failed, input := x.id, workflow.Items{{JSON: errorReport(&x.state.Meta)}}
	priority, tenant := x.state.Meta.Priority, x.state.Meta.Tenant
	return func(r *errandRun, _ bool, done func(error)) {
		failpoint.Hit("before-start-error-workflow")
		c := r.c
		log := c.log.With(zap.String("execution_id", string(failed)), zap.String("error_workflow", workflowID))
		if p == nil {
			ctx, cancel := context.WithTimeout(c.ctx, storeTimeout)
			defer cancel()
			found := r.lookUp(ctx, workflowID)
			switch {
			case found.problem == nil:
			case found.problem.Code == queue.CodeUnavailable || found.problem.Code == queue.CodeFull:
				done(found.problem)
				return
			default:
				log.Warn("error workflow cannot be started: store it with `reprise workflows put FILE`", zap.String("problem", found.problem.Message))
				done(nil)
				return
			}
			p = found.program
		}
		start := enabled(p.workflow, errorTrigger)
		if start == nil {
			log.Warn("error workflow has no enabled error trigger and was not started")
			done(nil)
			return
		}
		meta := engine.Meta{
			ID: errorID(failed), Mode: modeError, WorkflowHash: p.workflow.Hash, WorkflowID: workflowID, WorkflowName: p.workflow.Name,
			Priority: priority, Tenant: tenant,
		}
		c.create(p, meta, engine.Started{Start: start.Name, Input: input}, func(err error) {
			failpoint.Hit("after-start-error-workflow")
			refused := (*refusedError)(nil)
			switch {
			case errors.As(err, &refused):
				log.Warn("error workflow was not started", zap.Error(err))
			case err != nil && !errors.Is(err, state.ErrExists):
				done(fmt.Errorf("start error workflow %s: %w", workflowID, err))
				return
			}
			done(nil)
		})
	}
}

// maxID is the length of an execution's id.
const maxID = 128

// errorID is the id of the execution that hears of a failure: the same whenever
// it is asked for, so that it is started once.
func errorID(failed engine.ExecutionID) engine.ExecutionID {
	const suffix = "-error"
	if len(failed)+len(suffix) <= maxID {
		return failed + suffix
	}
	sum := sha256.Sum256([]byte(failed))
	digest := hex.EncodeToString(sum[:8])
	return failed[:maxID-len(suffix)-len(digest)-1] + "-" + engine.ExecutionID(digest) + suffix
}

// errorReport is the item that an error workflow begins with, in n8n's shape.
func errorReport(meta *engine.Meta) json.RawMessage {
	type failure struct {
		Message     string `json:"message"`
		Description string `json:"description,omitempty"`
		Name        string `json:"name,omitempty"`
		Reason      string `json:"reason,omitempty"`
		HTTPCode    string `json:"httpCode,omitempty"`
	}
	var report struct {
		Execution struct {
			ID       engine.ExecutionID `json:"id"`
			RetryOf  engine.ExecutionID `json:"retryOf,omitempty"`
			Error    failure            `json:"error"`
			LastNode string             `json:"lastNodeExecuted,omitempty"`
			Mode     string             `json:"mode"`
		} `json:"execution"`
		Workflow struct {
			ID   string `json:"id,omitempty"`
			Name string `json:"name"`
		} `json:"workflow"`
	}
	e := meta.Error
	report.Execution.ID, report.Execution.RetryOf = meta.ID, meta.RetryOf
	report.Execution.Error = failure{
		Message: e.Message, Description: e.Description, Name: e.Name, Reason: string(e.Reason), HTTPCode: e.HTTPCode,
	}
	report.Execution.LastNode, report.Execution.Mode = meta.LastNode, meta.Mode
	report.Workflow.ID, report.Workflow.Name = meta.WorkflowID, meta.WorkflowName
	data, _ := json.Marshal(report) // strings always encode
	return data
}
