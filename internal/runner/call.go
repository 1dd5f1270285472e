package runner

import (
	"context"
	"encoding/json"
	"errors"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/redact"
	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// call builds what the node's code is given, with the calls of its sub-nodes. The secrets
// that it asks for are added to secrets, what its scripts note about the execution to noted.
func (r *Runner) call(job *queue.Job, plan *Plan, n *workflow.Node, typ *node.Type, data node.RunData, secrets *redact.Set, noted *customData) *node.Call {
	scope := expression.Scope{
		RunIndex: job.RunIndex, Inputs: job.Inputs, Sources: job.Source, RunData: data,
		Nodes: plan.nodes, ToolArguments: job.ToolArguments, Timezone: plan.Timezone, Now: r.config.Now(),
	}
	scope.Execution.ID, scope.Execution.Mode, scope.Execution.IdempotencyKey = string(job.Execution), job.Mode, job.IdempotencyKey
	scope.Execution.ResumeURL, scope.Execution.ResumeFormURL = job.ResumeURL, job.ResumeFormURL
	scope.Execution.CustomData = job.CustomData
	scope.Workflow.ID, scope.Workflow.Name, scope.Workflow.Active = plan.WorkflowID, plan.WorkflowName, plan.Active

	base := node.Call{
		Execution: node.ExecutionInfo{ID: job.Execution, Mode: job.Mode, ResumeURL: job.ResumeURL, ApprovalURL: job.ApprovalURL},
		Workflow: node.WorkflowInfo{
			ID: plan.WorkflowID, Name: plan.WorkflowName, Active: plan.Active,
			Timezone: plan.Timezone, Nodes: plan.nodes,
		},
		RunIndex: job.RunIndex, Attempt: job.Attempt, IdempotencyKey: job.IdempotencyKey,
		Inputs: job.Inputs, Source: job.Source, RunData: data,
		Services: node.Services{
			Log: r.config.Log.WithLazy(zap.String("execution_id", string(job.Execution)), zap.String("node", n.Name),
				zap.Int("run_index", job.RunIndex), zap.Int("attempt", job.Attempt)),
			Now: r.config.Now, HTTP: r.config.HTTP,
			Parameters:  &resolver{evaluator: r.config.Evaluator, base: scope},
			Credentials: r.noting(secrets, scope, n), LoadMemory: r.config.LoadMemory, RunScript: r.runScript(scope, noted),
			ObserveModel: r.config.ObserveModel, Tables: r.config.Tables,
			Files: &node.Files{Store: r.config.Files, Execution: job.Execution, InlineBytes: r.config.InlineFileBytes, MaxBytes: r.config.MaxFileBytes},
		},
	}
	top := base
	top.Node, top.Type = n, typ
	top.Rounds, top.Context = job.Rounds, job.Context
	top.ToolArguments, top.ToolCallID = job.ToolArguments, job.ToolCallID
	top.Resumption = job.Resumption
	top.SubNodes = r.subCalls(&base, plan, n.Name, map[string]bool{n.Name: true})
	return &top
}

// subCalls builds the calls of the nodes attached to name. onPath guards against
// a document whose sub-nodes are attached in a circle.
func (r *Runner) subCalls(base *node.Call, plan *Plan, name string, onPath map[string]bool) map[string][]*node.Call {
	attached := plan.SubNodes[name]
	if len(attached) == 0 {
		return nil
	}
	calls := make(map[string][]*node.Call, len(attached))
	for connType, names := range attached {
		for _, subName := range names {
			n := plan.nodes[subName]
			if n == nil || onPath[subName] {
				continue
			}
			typ, ok := r.config.Registry.Find(n.Type, n.TypeVersion)
			if !ok {
				continue
			}
			sub := *base
			sub.Node, sub.Type = n, typ
			onPath[subName] = true
			sub.SubNodes = r.subCalls(base, plan, subName, onPath)
			delete(onPath, subName)
			calls[connType] = append(calls[connType], &sub)
		}
	}
	return calls
}

// resolver evaluates parameters in the scope of one job. Sub-nodes see the
// inputs of the node they serve.
type resolver struct {
	evaluator *expression.Evaluator
	base      expression.Scope
}

// Resolve implements node.ParameterResolver.
func (r *resolver) Resolve(ctx context.Context, call *node.Call, item int, raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 || (raw[0] != '"' && raw[0] != '{' && raw[0] != '[') {
		return raw, nil
	}
	scope := r.base
	scope.Node = call.Node
	value, err := r.evaluator.Resolve(ctx, &scope, item, raw)
	if failed := (*expression.Error)(nil); errors.As(err, &failed) {
		return nil, expressionFailure(failed)
	}
	return value, err
}
