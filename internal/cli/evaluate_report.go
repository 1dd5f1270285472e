package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	evalnodes "github.com/reprise-engine/reprise/pkg/nodes/evaluation"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// evaluationReport is what came out of the rows of a dataset.
type evaluationReport struct {
	Rows   []evaluatedRow `json:"rows"`
	Count  int            `json:"count"`
	Failed int            `json:"failed"`
	// Means of the metrics, over the rows that succeeded and have them.
	Means map[string]float64 `json:"means"`
}

// evaluatedRow is what came out of one row.
type evaluatedRow struct {
	Row       int                        `json:"row"` // from 1
	Execution engine.ExecutionID         `json:"executionId"`
	Status    engine.Status              `json:"status"`
	Error     string                     `json:"error,omitempty"`
	Metrics   map[string]float64         `json:"metrics"`
	Outputs   map[string]json.RawMessage `json:"outputs"`
}

func newEvaluatedRow(id engine.ExecutionID, status engine.Status) *evaluatedRow {
	return &evaluatedRow{Execution: id, Status: status, Metrics: map[string]float64{}, Outputs: map[string]json.RawMessage{}}
}

// collect takes the metrics and outputs of the Evaluation nodes. A metric that is set several times, as for several
// items, is the mean of them; of an output the last one counts.
func (r *evaluatedRow) collect(w *workflow.Workflow, x *queue.Execution) error {
	data, err := runDataOf(x)
	if err != nil {
		return err
	}
	values := map[string][]float64{}
	for _, n := range w.Nodes {
		if n.Type != evalnodes.Type || n.Disabled {
			continue
		}
		operation := evalnodes.Operation(n)
		if operation != evalnodes.SetMetrics && operation != evalnodes.SetOutputs {
			continue
		}
		names := gjson.GetBytes(n.Parameters, "outputs.values.#.outputName").Array()
		for _, item := range putOut(data.ResultData.RunData[n.Name]) {
			object := gjson.ParseBytes(item.JSON)
			if operation == evalnodes.SetMetrics {
				object.ForEach(func(name, value gjson.Result) bool {
					if value.Type == gjson.Number { // an item that failed has a text
						values[name.Str] = append(values[name.Str], value.Num)
					}
					return true
				})
				continue
			}
			for _, name := range names {
				if value := object.Get(gjson.Escape(name.Str)); value.Exists() {
					r.Outputs[name.Str] = json.RawMessage(value.Raw)
				}
			}
		}
	}
	r.Metrics = means(values)
	return nil
}

// putOut are the items of the first output of all runs of a node.
func putOut(runs []*engine.Record) (items workflow.Items) {
	for _, run := range runs {
		if outputs := run.Data[workflow.Main]; len(outputs) > 0 {
			items = append(items, outputs[0]...)
		}
	}
	return items
}

func means(values map[string][]float64) map[string]float64 {
	means := map[string]float64{}
	for name, list := range values {
		sum := 0.0
		for _, value := range list {
			sum += value
		}
		means[name] = sum / float64(len(list))
	}
	return means
}

// sum counts the rows.
func (r *evaluationReport) sum() {
	values := map[string][]float64{}
	r.Count = len(r.Rows)
	for i := range r.Rows {
		if r.Rows[i].Status != engine.StatusSuccess {
			r.Failed++
			continue
		}
		for name, value := range r.Rows[i].Metrics {
			values[name] = append(values[name], value)
		}
	}
	r.Means = means(values)
}

func (r *evaluationReport) print(out io.Writer) {
	fmt.Fprintf(out, "\n%d rows, %d failed\n", r.Count, r.Failed)
	for _, name := range slices.Sorted(maps.Keys(r.Means)) {
		fmt.Fprintf(out, "mean %s=%s\n", name, shortNumber(r.Means[name]))
	}
}

func (r *evaluatedRow) print(out io.Writer) {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(r.Metrics)) {
		words = append(words, name+"="+shortNumber(r.Metrics[name]))
	}
	status := fmt.Sprintf("%-8s", r.Status)
	if r.Status == engine.StatusSuccess {
		status = styleFor(out).green(status)
	} else {
		status = styleFor(out).red(status)
		words = append(words, r.Error)
	}
	fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("%4d  %s  %s", r.Row, status, strings.Join(words, "  ")), " "))
}

// shortNumber writes a metric for people.
func shortNumber(value float64) string {
	text := strconv.FormatFloat(value, 'f', 4, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
