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

// The longest key and value that Execution Data keeps, in characters, and how many keys.
const (
	maxDataKey   = 50
	maxDataValue = 512
	maxDataKeys  = 100
)

var dataKey = regexp.MustCompile(`^\w+$`)

// ExecutionData notes keys and values about the execution ($execution.customData) and passes its items
// on. They are also in the log of the node's record, a line each.
func ExecutionData() *node.Type {
	return &node.Type{
		Spec:   workflow.Spec{Type: base + "executionData", Versions: []float64{1, 1.1}},
		Inline: true,
		Execute: func(ctx context.Context, call *node.Call) (*node.Result, error) {
			result := passAll(call.Input(0))
			result.CustomData = map[string]string{}
			for i := range call.Input(0) {
				lines, err := executionData(ctx, call, i, result.CustomData)
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

func executionData(ctx context.Context, call *node.Call, item int, into map[string]string) (lines []string, err error) {
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
		name, text := shortened(name, maxDataKey), shortened(jsText(value), maxDataValue)
		if _, known := into[name]; !known && len(into) >= maxDataKeys {
			return nil, node.OperationError(item, "The node saves more than "+strconv.Itoa(maxDataKeys)+" keys of execution data", "Keep what is more in the items.")
		}
		into[name] = text
		lines = append(lines, "execution data: "+name+" = "+text)
	}
	return lines, nil
}

func shortened(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		text = string(runes[:limit])
	}
	return strings.ReplaceAll(text, "\n", " ")
}
