package core

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Code runs JavaScript or Python over all items at once, or on each.
func Code() *node.Type {
	return &node.Type{
		Spec: workflow.Spec{Type: base + "code", Versions: []float64{1, 2}},
		Once: func(n *workflow.Node) bool { return sends(gjson.GetBytes(n.Parameters, "jsCode").Str) },

		Execute: executeCode,
	}
}

var request = regexp.MustCompile(`\bhelpers\s*\.\s*(httpRequest|request)\b`)

// sends reports whether code makes HTTP requests that its author does not protect
// against being repeated. Other code does nothing outside of itself.
func sends(code string) bool {
	return request.MatchString(code) && !idempotent.MatchString(code)
}

var idempotent = regexp.MustCompile(`(?i)idempotency-?key`)

func executeCode(ctx context.Context, call *node.Call) (*node.Result, error) {
	script := node.Script{Code: parameter(call, "jsCode").String(), Item: node.AllItems}
	if language := parameter(call, "language").Str; strings.HasPrefix(strings.ToLower(language), "python") {
		script.Code, script.Language = parameter(call, "pythonCode").String(), "python"
	}
	if script.Code == "" {
		// n8n says no more than this; the description is for people.
		return nil, &engine.NodeError{
			Name: "WrappedExecutionError", Message: "Unknown error",
			Description: "The node has no code. Write some that returns items.", NotRetryable: true,
		}
	}
	if call.RunScript == nil {
		return nil, errors.New("this process runs no scripts")
	}
	if parameter(call, "mode").Str == "runOnceForEachItem" {
		return codeEach(ctx, call, script)
	}
	return codeAll(ctx, call, script)
}

func codeAll(ctx context.Context, call *node.Call, code node.Script) (*node.Result, error) {
	script, err := call.RunScript(ctx, call, code)
	var logs []string
	if script != nil {
		logs = script.Logs
	}
	if err != nil {
		if !thrown(ctx, call, err) {
			return failed(err, logs)
		}
		return logged(node.Outputs(workflow.Items{node.ErrorItem(err.Error(), nil)}), logs), nil
	}
	items, failure := itemsOf(script)
	if failure != nil {
		return failed(failure, logs)
	}
	return logged(node.Outputs(items), logs), nil
}

func codeEach(ctx context.Context, call *node.Call, code node.Script) (*node.Result, error) {
	if code.Language == "" {
		if err := allowedForEach(code.Code); err != nil {
			return nil, err
		}
	}
	code.Item, code.GoOn = node.EachItem, call.Node.Continues()
	script, err := call.RunScript(ctx, call, code)
	if script == nil {
		script = &node.ScriptResult{}
	}
	if err != nil {
		return failed(err, script.Logs)
	}
	var out workflow.Items
	var invalid *engine.NodeError
	for i := range script.Each {
		if failure := script.Each[i].Err; failure != nil {
			if failure.ItemIndex == nil {
				failure.ItemIndex = &i
			}
			if !thrown(ctx, call, failure) {
				return failed(failure, script.Logs)
			}
			out = append(out, node.ErrorItem(failure.Error(), workflow.Paired(i)))
			continue
		}
		item, keep, failure := itemOf(&script.Each[i], i)
		if failure != nil && invalid == nil {
			invalid = failure
		}
		if keep {
			out = append(out, item)
		}
	}
	// What was returned is judged when the code has seen all items.
	if invalid != nil {
		return failed(invalid, script.Logs)
	}
	return logged(node.Outputs(out), script.Logs), nil
}

// thrown reports whether err is the script's own and the node goes on with it
// as data. A script that was stopped (time, memory) is not asked.
func thrown(ctx context.Context, call *node.Call, err error) bool {
	var failure *engine.NodeError
	return call.Survives(ctx, err) && errors.As(err, &failure) && failure.Reason == ""
}

// failed keeps what the code wrote to the console beside its error.
func failed(err error, logs []string) (*node.Result, error) {
	var failure *engine.NodeError
	if len(logs) == 0 || !errors.As(err, &failure) {
		return nil, err
	}
	return &node.Result{Result: engine.Result{Error: failure, Logs: logs}}, nil
}

func logged(result *node.Result, logs []string) *node.Result {
	result.Logs = logs
	return result
}

var allItems = regexp.MustCompile(`\$input\.(first|last|all|itemMatching)`)

// allowedForEach refuses code that asks for all items while it runs on each, by
// reading it, as n8n does.
func allowedForEach(code string) error {
	for n, line := range strings.Split(code, "\n") {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "//") || strings.HasPrefix(trimmed, "*") {
			continue
		}
		if match := allItems.FindStringSubmatch(line); match != nil {
			first := 0
			return &engine.NodeError{
				Message:     fmt.Sprintf("Can't use .%s() here [line %d, for item 0]", match[1], n+1),
				Description: "This is only available in 'Run Once for All Items' mode",
				ItemIndex:   &first,
			}
		}
	}
	return nil
}

// scriptValue is what a script returned; it does not exist for undefined.
func scriptValue(script *node.ScriptResult) gjson.Result {
	if script == nil || script.Type == "undefined" || script.Type == "function" {
		return gjson.Result{}
	}
	return gjson.ParseBytes(script.Value)
}
