package expression

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/reprise-engine/reprise/pkg/javascript"
)

// What Code.Item may be besides the index of an item.
const (
	// AllItems runs a script once, with all items.
	AllItems = -1
	// EachItem runs a script on every item, one after the other, in one VM.
	EachItem = -2
)

// Code is the script of a Code node.
type Code struct {
	Source string
	// Item is the index of $json and $input.item, AllItems or EachItem.
	Item int
	// GoOn: with EachItem, what a script throws does not keep it from the next item.
	GoOn bool
	// Old is the kind of node before there were Code nodes, which decides what the script
	// finds as items and item; "" is none.
	Old OldCode
	// Globals are further variables by name, as JSON.
	Globals map[string]json.RawMessage
	// Timeout ends the script; 0 is the evaluator's default.
	Timeout time.Duration
	// Calls are what the script can ask its process for, by name (see calls.go).
	Calls map[string]AsyncCall
}

// OldCode is a node type that runs code in a way of its own.
type OldCode string

// The old node types: function has items, functionItem has item, which is its json.
const (
	OldFunction     OldCode = "function"
	OldFunctionItem OldCode = "functionItem"
)

// CodeResult is what a script returned.
type CodeResult struct {
	// JSON is nil for undefined and for functions.
	JSON json.RawMessage
	// Type is JavaScript's typeof, with "array" and "null" told apart.
	Type string
	// Binary are the files of the item after an OldFunctionItem, as JSON; nil is none.
	Binary json.RawMessage
	// Err is what the script threw for this item; only in Each.
	Err *Error
	// Each are the results of EachItem, in the order of the items. It is shorter when a
	// script threw and may not go on; the last then has Err.
	Each []CodeResult
	// Logs are the lines written to the console.
	Logs []string
	// CustomData is what the script noted about the execution, nil when nothing.
	CustomData map[string]string
}

// RunCode runs a script with the globals of a Code node. It may return with
// return and wait with await. What the script throws is returned as *Error, with
// the text that n8n shows ("boom [line 1]") and the kind of error as description;
// so are a timeout and too much memory, with Type "timeout" and "memory", and the end
// of the process that ran it, with Type "process". The result then still has what
// was logged before.
func (e *Evaluator) RunCode(ctx context.Context, s *Scope, code Code) (CodeResult, error) {
	if e.scripts == nil {
		return CodeResult{}, errNoEngine
	}
	if code.Timeout <= 0 {
		code.Timeout = e.config.CodeTimeout
	}
	if tokens, ok := lex(code.Source); ok {
		code.Source = rewrite(code.Source, tokens, false)
	}
	return RunCodeWith(ctx, e.scripts, s, code)
}

// RunCodeWith is RunCode with any runner, also of another language; code.Timeout is not 0.
func RunCodeWith(ctx context.Context, scripts ScriptRunner, s *Scope, code Code) (CodeResult, error) {
	globals := []byte("{}")
	if code.Globals != nil {
		var err error
		if globals, err = json.Marshal(code.Globals); err != nil {
			return CodeResult{}, fmt.Errorf("globals of a script: %w", err)
		}
	}
	calls, end := newCalls(ctx, code.Timeout, code.Calls)
	defer end()
	run := &codeRun{scope: s, calls: calls, each: code.Item == EachItem}
	reply, err := scripts.RunScript(ctx, PreparedScript{
		Source: code.Source, Item: code.Item, Globals: string(globals), Scope: string(s.describeFor(&code)), Timeout: code.Timeout,
	}, run.host)
	result := CodeResult{Logs: run.logs, Each: run.results, CustomData: run.custom}
	if err != nil {
		return result, codeError(ctx, err)
	}
	return run.outcome(result, reply)
}

// describeFor is describe with what concerns the script alone.
func (s *Scope) describeFor(code *Code) json.RawMessage {
	d := s.description()
	d.Code.Items, d.Code.GoOn, d.Code.Old = len(s.input()), code.GoOn, code.Old
	raw, _ := json.Marshal(d) // nothing in it can fail
	return raw
}

func codeError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var timeout *javascript.TimeoutError
	var memory *javascript.MemoryError
	var failed *Error
	switch {
	case errors.As(err, &failed):
		return failed
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

// Bounds of what one run logs. The script side has the same ones (standard.js).
const (
	maxLogLines = 1001
	maxLogBytes = 512 << 10
	// maxCustomData are the keys of custom data; code.js has the same bound.
	maxCustomData = 100
)

// codeRun collects what a running script hands over.
type codeRun struct {
	scope    *Scope
	calls    *calls
	each     bool
	logs     []string
	logBytes int
	results  []CodeResult
	custom   map[string]string
}

// host answers what code.js and globals.js ask for.
func (r *codeRun) host(op, arg string) (string, bool, error) {
	switch op {
	case "log":
		return "", false, r.log(arg)
	case "each":
		return "", false, r.eachResults(arg)
	case "custom":
		return "", false, r.note(arg)
	case "start":
		return "", false, r.calls.start(arg)
	case "settled":
		reply, err := r.calls.settled(arg)
		return reply, reply != "", err
	}
	return r.scope.host()(op, arg)
}

func (r *codeRun) log(arg string) error {
	var lines []string
	if err := json.Unmarshal([]byte(arg), &lines); err != nil {
		return fmt.Errorf("run a script: logs: %w", err)
	}
	for _, line := range lines {
		if len(r.logs) < maxLogLines && r.logBytes < maxLogBytes {
			r.logs = append(r.logs, line)
			r.logBytes += len(line)
		}
	}
	return nil
}

// note takes a key of the execution's custom data and its value.
func (r *codeRun) note(arg string) error {
	var pair [2]string
	if err := json.Unmarshal([]byte(arg), &pair); err != nil {
		return fmt.Errorf("run a script: custom data: %w", err)
	}
	if r.custom == nil {
		r.custom = map[string]string{}
	}
	if _, known := r.custom[pair[0]]; known || len(r.custom) < maxCustomData {
		r.custom[pair[0]] = pair[1]
	}
	return nil
}

// eachResults takes the outcomes of some items, one a line: JSON has no line breaks.
func (r *codeRun) eachResults(arg string) error {
	for line := range strings.SplitSeq(arg, "\n") {
		result, err := decodeOutcome(line)
		var failed *Error
		if errors.As(err, &failed) && failed.Type != "memory" {
			result.Err, err = failed, nil
		}
		if err != nil {
			return err
		}
		r.results = append(r.results, result)
	}
	return nil
}

// outcome completes result with what poll in code.js wrote in the end.
func (r *codeRun) outcome(result CodeResult, reply string) (CodeResult, error) {
	got, err := decodeOutcome(reply)
	if err == nil && !r.each {
		result.JSON, result.Type, result.Binary = got.JSON, got.Type, got.Binary
	}
	return result, err
}

// decodeOutcome reads "v<type> <json>", with a tab and the files of an old item behind
// it, "e<error>", or "m" for out of memory.
func decodeOutcome(outcome string) (CodeResult, error) {
	var result CodeResult
	if outcome == "" {
		return result, errors.New("run a script: the engine gave no answer")
	}
	switch outcome[0] {
	case 'v':
		var value string
		result.Type, value, _ = strings.Cut(outcome[1:], " ")
		value, files, _ := strings.Cut(value, "\t")
		if value != "" {
			result.JSON = json.RawMessage(value)
		}
		if files != "" {
			result.Binary = json.RawMessage(files)
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
