package evaluation

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/nodes/toolname"
)

// The values of the parameter metric.
const (
	customMetrics    = "customMetrics"
	categorization   = "categorization"
	stringSimilarity = "stringSimilarity"
	toolsUsed        = "toolsUsed"
	correctness      = "correctness"
	helpfulness      = "helpfulness"
)

// metrics are those of an item, an object of numbers.
func metrics(ctx context.Context, call *node.Call, i int) (json.RawMessage, error) {
	kind, err := call.String(ctx, i, "metric", defaultMetric(call))
	if err != nil {
		return nil, err
	}
	var score float64
	name := ""
	switch kind {
	case customMetrics:
		return assigned(ctx, call, i)
	case categorization, stringSimilarity:
		expected, actual, err := answers(ctx, call, i)
		if err != nil {
			return nil, err
		}
		if name = "Categorization"; kind == stringSimilarity {
			name = "String Similarity"
			score, err = similarity(ctx, expected, actual)
		} else if expected == actual {
			score = 1
		}
		if err != nil {
			return nil, err
		}
	case toolsUsed:
		name = "Tools Used"
		if score, err = shareOfTools(ctx, call, i); err != nil {
			return nil, err
		}
	case correctness, helpfulness:
		return nil, node.OperationError(i, fmt.Sprintf("the metric %q, which a model judges, is not supported", kind),
			"Have an AI Agent judge before this node, and set its score as a custom metric.")
	default:
		return nil, node.Unknown(i, "metric", kind, customMetrics, categorization, stringSimilarity, toolsUsed)
	}
	if name, err = call.String(ctx, i, "options.metricName", name); err != nil {
		return nil, err
	}
	var o jsonobject.Object
	o.Set(name, strconv.FormatFloat(score, 'g', -1, 64))
	return o.JSON(), nil
}

// defaultMetric is the metric of a node that names none. The first version has but one kind.
func defaultMetric(call *node.Call) string {
	if call.Node.TypeVersion <= 4.6 || len(call.Raw("metrics")) > 0 {
		return customMetrics
	}
	return correctness
}

// assigned are the custom metrics.
func assigned(ctx context.Context, call *node.Call, i int) (json.RawMessage, error) {
	const path = "metrics.assignments"
	var said []struct {
		Name  string          `json:"name"`
		Value json.RawMessage `json:"value"`
	}
	if err := call.ParamInto(ctx, i, path, &said); err != nil {
		return nil, err
	}
	if len(said) == 0 {
		return nil, node.OperationError(i, "no metric is defined", "parameter "+path)
	}
	var o jsonobject.Object
	for n, metric := range said {
		if metric.Name == "" {
			return nil, node.OperationError(i, fmt.Sprintf("metric %d has no name", n+1), "parameter "+path)
		}
		number, ok := numeric(metric.Value)
		if !ok {
			shown := string(metric.Value)
			if shown == "" {
				shown = "undefined"
			}
			return nil, node.OperationError(i, fmt.Sprintf("the metric %q must be a number, and is %.100s", metric.Name, shown), "parameter "+path)
		}
		o.Set(metric.Name, strconv.FormatFloat(number, 'g', -1, 64))
	}
	return o.JSON(), nil
}

// numeric is the number that a value is, or writes.
func numeric(raw json.RawMessage) (float64, bool) {
	switch value := gjson.ParseBytes(raw); value.Type {
	case gjson.Number:
		return value.Num, true
	case gjson.String:
		number, err := strconv.ParseFloat(strings.TrimSpace(value.Str), 64)
		return number, err == nil && !math.IsNaN(number) && !math.IsInf(number, 0)
	}
	return 0, false
}

func answers(ctx context.Context, call *node.Call, i int) (expected, actual string, err error) {
	for _, answer := range []struct {
		into *string
		path string
	}{{&expected, "expectedAnswer"}, {&actual, "actualAnswer"}} {
		value, err := call.Param(ctx, i, answer.path)
		if err != nil {
			return "", "", err
		}
		if len(value) == 0 || string(value) == "null" { // not a text that is empty: that may be right
			return "", "", node.OperationError(i, "there is no "+answer.path+" to compare", "parameter "+answer.path)
		}
		*answer.into = gjson.ParseBytes(value).String()
	}
	return expected, actual, nil
}

// similarity is 1 for texts that are equal and 0 for those that have no character in common: what is
// left of the longer one when the characters that must change are taken away.
func similarity(ctx context.Context, a, b string) (float64, error) {
	left, right := []rune(a), []rune(b)
	longer := max(len(left), len(right))
	if longer == 0 {
		return 1, nil
	}
	// Levenshtein's distance by rows: row[j] is that of what was seen of left and the first j of right.
	row := make([]int, len(right)+1)
	for j := range row {
		row[j] = j
	}
	for i, character := range left {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		diagonal := row[0]
		row[0] = i + 1
		for j, other := range right {
			changed := diagonal
			if character != other {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return 1 - float64(row[len(right)])/float64(longer), nil
}

// shareOfTools is how many of the expected tools the Agent used, as a share of them.
func shareOfTools(ctx context.Context, call *node.Call, i int) (float64, error) {
	expected, err := call.String(ctx, i, "expectedTools", "")
	if err != nil {
		return 0, err
	}
	raw, err := call.Param(ctx, i, "intermediateSteps")
	if err != nil {
		return 0, err
	}
	steps := gjson.ParseBytes(raw)
	if steps.Type == gjson.String {
		steps = gjson.Parse(steps.Str)
	}
	if !steps.IsArray() {
		return 0, node.OperationError(i, "there are no intermediate steps to look for tools in",
			"parameter intermediateSteps: set the AI Agent's option Return Intermediate Steps, and give its intermediateSteps")
	}
	// An Agent shows its tools to the model under names that models accept.
	comparable := func(name string) string { return strings.ToLower(toolname.Legal(strings.TrimSpace(name))) }
	var used []string
	for _, name := range steps.Get("#.action.tool").Array() {
		used = append(used, comparable(name.String()))
	}
	count, found := 0, 0
	for name := range strings.SplitSeq(expected, ",") {
		if strings.TrimSpace(name) == "" {
			continue
		}
		if count++; slices.Contains(used, comparable(name)) {
			found++
		}
	}
	if count == 0 {
		return 0, node.OperationError(i, "no tools are expected", "parameter expectedTools: name them, with commas between them")
	}
	return float64(found) / float64(count), nil
}
