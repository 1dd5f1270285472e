package runner

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/node"
)

// PythonRunner runs the Python of Code nodes.
type PythonRunner interface {
	// RunPython runs code in the scope of a run. Errors and results are those of
	// expression.Evaluator.RunCode.
	RunPython(ctx context.Context, scope *expression.Scope, code expression.Code) (expression.CodeResult, error)
}

// runScript runs the code of a Code node in the scope of one job.
// What it notes about the execution is added to noted.
func (r *Runner) runScript(base expression.Scope, noted *customData) func(context.Context, *node.Call, node.Script) (*node.ScriptResult, error) {
	return func(ctx context.Context, call *node.Call, script node.Script) (*node.ScriptResult, error) {
		scope := base
		scope.Node = call.Node
		scope.Execution.CustomData = noted.over(base.Execution.CustomData)
		code := expression.Code{
			Source: script.Code, Item: script.Item, GoOn: script.GoOn, Old: expression.OldCode(script.Old),
			Globals: script.Globals, Timeout: script.Timeout, Calls: scriptCalls(call),
		}
		if script.Closed {
			scope, code.Calls = expression.Scope{}, nil
		}
		run := r.config.Evaluator.RunCode
		if script.Language == "python" {
			if r.config.Python == nil {
				return nil, &engine.NodeError{
					Name: "NodeOperationError", Message: "Python is switched off in this worker", NotRetryable: true,
					Description: "Rewrite the code in JavaScript, or have the workers started with REPRISE_PYTHON=on and a python3 on their PATH.",
				}
			}
			run = r.config.Python.RunPython
		}
		result, err := run(ctx, &scope, code)
		noted.add(result.CustomData)
		return scriptResult(result), scriptError(err)
	}
}

func scriptResult(r expression.CodeResult) *node.ScriptResult {
	result := &node.ScriptResult{Value: r.JSON, Type: r.Type, Binary: r.Binary, Logs: r.Logs}
	if r.Err != nil {
		result.Err = scriptFailure(r.Err)
	}
	for _, one := range r.Each {
		result.Each = append(result.Each, *scriptResult(one))
	}
	return result
}

// scriptError is what a script threw, or that it was stopped, as the node
// failure it is.
func scriptError(err error) error {
	var failed *expression.Error
	if !errors.As(err, &failed) {
		return err
	}
	return scriptFailure(failed)
}

// scriptFailure has a reason only for what was stopped: node code may go on with what was
// thrown.
func scriptFailure(failed *expression.Error) *engine.NodeError {
	failure := &engine.NodeError{Name: "NodeOperationError", Message: failed.Message, Description: failed.Description}
	if failed.Name != "" {
		failure.Name = failed.Name
	}
	switch failed.Type {
	case "timeout":
		failure.Reason = engine.ReasonTimeout
	case "memory":
		failure.Reason = engine.ReasonTooLarge
	case "process":
		failure.Context = json.RawMessage(`{"type":"process"}`)
	}
	return failure
}
