package core

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// The longest key and value that Execution Data keeps, in characters.
const (
	maxDataKey   = 50
	maxDataValue = 512
)

var dataKey = regexp.MustCompile(`^\w+$`)

// ExecutionData notes keys and values about the execution and passes its items
// on. They are kept in the log of the node's record, a line each; n8n keeps
// them in an index of its own.
func ExecutionData() *node.Type {
	return &node.Type{
		Spec:   workflow.Spec{Type: base + "executionData", Versions: []float64{1, 1.1}},
		Inline: true,
		Execute: func(ctx context.Context, call *node.Call) (*node.Result, error) {
			result := passAll(call.Input(0))
			for i := range call.Input(0) {
				lines, err := executionData(ctx, call, i)
				if err != nil {
					if !call.Survives(ctx, err) {
						return nil, err
					}
					result.Outputs[0][i] = node.ErrorItem(err.Error(), workflow.Paired(i))
					continue
				}
				result.Logs = append(result.Logs, lines...)
			}
			return result, nil
		},
	}
}

func executionData(ctx context.Context, call *node.Call, item int) (lines []string, err error) {
	for _, one := range parameter(call, "dataToSave.values").Array() {
		var key, value gjson.Result
		if key, err = resolve(ctx, call, item, one.Get("key"), "dataToSave"); err != nil {
			return nil, err
		}
		if value, err = resolve(ctx, call, item, one.Get("value"), "dataToSave"); err != nil {
			return nil, err
		}
		name := key.String()
		if !dataKey.MatchString(name) {
			return nil, node.OperationError(item, "The key "+strconv.Quote(name)+" of the execution data is not allowed",
				"A key is made of letters, digits and underscores.")
		}
		lines = append(lines, "execution data: "+shortened(name, maxDataKey)+" = "+shortened(jsText(value), maxDataValue))
	}
	return lines, nil
}

func shortened(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		text = string(runes[:limit])
	}
	return strings.ReplaceAll(text, "\n", " ")
}
