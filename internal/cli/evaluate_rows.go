package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	evalnodes "github.com/reprise-engine/reprise/pkg/nodes/evaluation"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/nodes/tables"
	"github.com/reprise-engine/reprise/pkg/table"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// readDataset reads the rows of a file. What CSV writes are numbers and booleans where all values of the
// column are.
func readDataset(file string) ([]json.RawMessage, error) {
	format, err := tableFormat("", file)
	if err != nil {
		return nil, fmt.Errorf("--rows: %w", err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--rows: %w", err)
	}
	names, rows, err := parseRows(data, format)
	if err != nil {
		return nil, fmt.Errorf("--rows %s: %w", file, err)
	}
	if format != "csv" {
		return rows, nil
	}
	var bare []string // the columns whose texts are JSON as they are
	for _, name := range names {
		if kind := guess(rows, name); kind == table.Number || kind == table.Boolean {
			bare = append(bare, name)
		}
	}
	for i := range rows {
		row := jsonobject.Parse(rows[i])
		for _, name := range bare {
			row.Set(name, gjson.Parse(row.Get(name)).String())
		}
		rows[i] = row.JSON()
	}
	return rows, nil
}

// writesBack is the document of a workflow whose nodes that write outputs into the table of the trigger
// know the row, as evalnodes.ParameterRow says.
func writesBack(w *workflow.Workflow, trigger *workflow.Node, warn func(string)) (json.RawMessage, error) {
	document := w.Raw
	of := evalnodes.DatasetOf(trigger).Table
	row := "={{ $(" + jsonobject.Quote(trigger.Name) + ").first().json." + table.ColumnID + " }}"
	path := nodesPath(gjson.ParseBytes(document), "")
	for i, n := range w.Nodes {
		if n.Type != evalnodes.Type || evalnodes.Operation(n) != evalnodes.SetOutputs || n.Disabled {
			continue
		}
		to := tables.Located([]byte(gjson.GetBytes(n.Parameters, tables.Parameter).Raw))
		if (to.ID == "" || to.ID != of.ID) && (to.Name == "" || to.Name != of.Name) {
			warn(fmt.Sprintf("%q writes nothing, since its data table is not the one that %q reads", n.Name, trigger.Name))
			continue
		}
		var err error
		if document, err = sjson.SetBytes(document, fmt.Sprintf("%s.%d.parameters.%s", path, i, evalnodes.ParameterRow), row); err != nil {
			return nil, fmt.Errorf("node %q: %w", n.Name, err)
		}
	}
	return document, nil
}

// nodesPath is where a document, which may be wrapped in others, has its nodes.
func nodesPath(v gjson.Result, path string) string {
	if v.Get("nodes").IsArray() {
		return path + "nodes"
	}
	found := ""
	index := 0
	v.ForEach(func(key, inner gjson.Result) bool {
		step := gjson.Escape(key.Str)
		if v.IsArray() {
			step = strconv.Itoa(index)
			index++
		}
		if inner.IsObject() || inner.IsArray() {
			found = nodesPath(inner, path+step+".")
		}
		return found == ""
	})
	return found
}

// minimum is the least mean of a metric.
type minimum struct {
	name  string
	value float64
}

func parseMinima(texts []string) ([]minimum, error) {
	var minima []minimum
	for _, text := range texts {
		at := strings.LastIndex(text, "=")
		if at < 1 {
			return nil, fmt.Errorf("--min %q: write it as NAME=VALUE", text)
		}
		value, err := strconv.ParseFloat(text[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("--min %q: %q is no number", text, text[at+1:])
		}
		minima = append(minima, minimum{text[:at], value})
	}
	return minima, nil
}

// verdict is why an evaluation is not good enough; nil when it is.
func (r *evaluationReport) verdict(minima []minimum) error {
	var reasons []string
	if r.Failed > 0 {
		reasons = append(reasons, fmt.Sprintf("%d of %d rows failed", r.Failed, r.Count))
	}
	for _, m := range minima {
		mean, ok := r.Means[m.name]
		switch {
		case !ok:
			reasons = append(reasons, fmt.Sprintf("no row has the metric %q", m.name))
		case mean < m.value-rounding:
			reasons = append(reasons, fmt.Sprintf("the mean of %s is %s, below %s", m.name, shortNumber(mean), shortNumber(m.value)))
		}
	}
	if reasons == nil {
		return nil
	}
	return errors.New(strings.Join(reasons, "; "))
}

// rounding is by how much a mean may miss its minimum: three times 0.1 is not quite 0.3.
const rounding = 1e-9
