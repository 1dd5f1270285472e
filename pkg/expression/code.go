package expression

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-engine/reprise/pkg/javascript"
)

// Code is the script of a Code node.
type Code struct {
	Source string
	// Item is the index of $json and $input.item; -1 runs once for all items.
	Item int
	// Globals are further variables by name, as JSON.
	Globals map[string]json.RawMessage
	// Timeout ends the script; 0 is the evaluator's default.
	Timeout time.Duration
}

// CodeResult is what a script returned.
type CodeResult struct {
	// JSON is nil for undefined and for functions.
	JSON json.RawMessage
	// Type is JavaScript's typeof, with "array" and "null" told apart.
	Type string
	// Logs are the lines written to the console.
	Logs []string
}

// RunCode runs a script with the globals of a Code node. It may return with
// return and wait with await. What the script throws is returned as *Error, with
// the text that n8n shows ("boom [line 1]") and the kind of error as description;
// so are a timeout and too much memory, with Type "timeout" and "memory". The
// result then still has what was logged before, except after these two.
func (e *Evaluator) RunCode(ctx context.Context, s *Scope, code Code) (CodeResult, error) {
	if e.scripts == nil {
		return CodeResult{}, errNoEngine
	}
	if code.Timeout <= 0 {
		code.Timeout = e.config.CodeTimeout
	}
	vm, reused, err := e.scripts.Acquire(ctx, s.sessionKey())
	if err != nil {
		return CodeResult{}, err
	}
	defer e.scripts.Release(vm)
	if code.Item < 0 {
		vm.Forget()
	}
	scope := ""
	if !reused {
		scope = string(s.describe())
	}
	globals, err := json.Marshal(code.Globals)
	if err != nil {
		return CodeResult{}, fmt.Errorf("globals of a script: %w", err)
	}
	if code.Globals == nil {
		globals = []byte("{}")
	}
	tokens, ok := lex(code.Source)
	source := code.Source
	if ok {
		source = rewrite(source, tokens, false)
	}
	reply, err := vm.CallAsync(ctx, code.Timeout, s.host(), source, strconv.Itoa(code.Item), string(globals), scope)
	if err != nil {
		vm.Forget()
		return CodeResult{}, codeError(ctx, err)
	}
	return decodeCode(reply)
}

func codeError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var timeout *javascript.TimeoutError
	var memory *javascript.MemoryError
	switch {
	case errors.As(err, &timeout):
		return &Error{
			Message:     fmt.Sprintf("The script was stopped after %s", timeout.After),
			Description: "Give the node less work at a time, or a longer timeout", Type: "timeout",
		}
	case errors.As(err, &memory):
		return &Error{
			Message:     fmt.Sprintf("The script needs more than %d MB of memory", memory.LimitBytes>>20),
			Description: "Process the items in smaller batches", Type: "memory",
		}
	case errors.Is(err, javascript.ErrPending):
		return &Error{Message: "The script waits for a promise that never settles"}
	}
	return fmt.Errorf("run a script: %w", err)
}

// decodeCode reads what poll in code.js wrote: the logs as a line of JSON, then
// the outcome.
func decodeCode(reply string) (CodeResult, error) {
	var result CodeResult
	logs, outcome, ok := strings.Cut(reply, "\n")
	if !ok || outcome == "" {
		return result, errors.New("run a script: the engine gave no answer")
	}
	if err := json.Unmarshal([]byte(logs), &result.Logs); err != nil {
		return result, fmt.Errorf("run a script: logs: %w", err)
	}
	if len(result.Logs) == 0 {
		result.Logs = nil
	}
	switch outcome[0] {
	case 'v':
		var value string
		result.Type, value, _ = strings.Cut(outcome[1:], " ")
		if value != "" {
			result.JSON = json.RawMessage(value)
		}
		return result, nil
	case 'm':
		return result, &Error{Message: "The script needs too much memory", Description: "Process the items in smaller batches", Type: "memory"}
	}
	failure := &Error{}
	if err := json.Unmarshal([]byte(outcome[1:]), failure); err != nil {
		return result, fmt.Errorf("run a script: error: %w", err)
	}
	return result, failure
}
