// Package evaluation is the Evaluation Trigger and the Evaluation node: a workflow is run once for
// each row of a dataset, says how well it did as numbers, and writes what came out beside the row.
// Names, versions and parameters are n8n's, but for ParameterRow.
//
// An execution is an evaluation when its mode is Mode. `reprise evaluate` begins those, one per row, at the
// trigger, and collects what the Evaluation nodes put out. Whatever else runs the workflow is no
// evaluation, also when it begins at the trigger.
//
// Items change on their way from the trigger to the node that writes back, and need not know their row
// any more. So who begins the execution sets ParameterRow of the nodes that write back, to an
// expression for the id of the row. Without it nothing is written.
package evaluation

import (
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/tables"
	"github.com/reprise-engine/reprise/pkg/table"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// The node types.
const (
	TypeTrigger = "n8n-nodes-base.evaluationTrigger"
	Type        = "n8n-nodes-base.evaluation"
)

// Mode of an execution that is an evaluation.
const Mode = "evaluation"

// ParameterRow of a node with the operation SetOutputs is the id of the row in the data table that it updates.
const ParameterRow = "rowId"

// The operations of the Evaluation node.
const (
	SetInputs         = "setInputs"
	SetOutputs        = "setOutputs"
	SetMetrics        = "setMetrics"
	CheckIfEvaluating = "checkIfEvaluating"
)

// The sources of a dataset.
const (
	SourceTable  = "dataTable"
	SourceSheets = "googleSheets"
)

// Types lists all node types of the package.
func Types() []*node.Type {
	return []*node.Type{
		{
			Spec: workflow.Spec{Type: TypeTrigger, Versions: []float64{4.6, 4.7}, Trigger: true, Polls: true},
			Support: node.Support{
				Options: []string{}, Credentials: []string{},
				Limits: []node.Limit{{Parameter: "filterRows", Advice: "give the rows with `reprise evaluate --rows`"}},
				Note: "`reprise evaluate` runs the workflow for each row, of the data table or of a file; begun without a row it reads the first of " +
					"its data table; Google Sheets are not read",
			},
			Execute: firstRow,
		},
		{
			Spec: workflow.Spec{Type: Type, Versions: []float64{4.6, 4.7, 4.8}, Accepts: []string{workflow.LanguageModel}, Outputs: func(n *workflow.Node) int {
				if Operation(n) == CheckIfEvaluating {
					return 2
				}
				return 1
			}},
			Support: node.Support{
				Options: []string{"metricName"}, Credentials: []string{},
				Limits: []node.Limit{{
					Parameter: "metric", Values: []string{correctness, helpfulness}, When: map[string]string{"operation": SetMetrics},
					Advice: "have a model judge before the node, and set its score as a custom metric",
				}},
				Note: "only what `reprise evaluate` begins is an evaluation; outputs are written to data tables, and not to Google Sheets",
			},
			Inline:  true,
			Apart:   func(n *workflow.Node) bool { return Operation(n) == SetOutputs || Operation(n) == SetMetrics },
			Execute: execute,
		},
	}
}

// Operation of an Evaluation node.
func Operation(n *workflow.Node) string {
	if said := gjson.GetBytes(n.Parameters, "operation").String(); said != "" {
		return said
	}
	return SetOutputs
}

// defaultSource is where the rows of a node are whose file does not say it.
func defaultSource(n *workflow.Node) string {
	if n.TypeVersion <= 4.6 {
		return SourceSheets
	}
	return SourceTable
}

// Dataset is what a trigger says about its rows.
type Dataset struct {
	Table  table.Ref // zero when it is none, or an expression
	Max    int       // rows; 0 is all
	Filter bool      // it wants some of the rows only
}

// defaultMaxRows is how many rows a limited trigger takes unless it says otherwise.
const defaultMaxRows = 10

// DatasetOf reads the dataset of a trigger.
func DatasetOf(n *workflow.Node) Dataset {
	var d Dataset
	parameters := gjson.ParseBytes(n.Parameters)
	d.Filter = parameters.Get("filterRows").Bool()
	if parameters.Get("limitRows").Bool() {
		d.Max = defaultMaxRows
		if most := parameters.Get("maxRows"); most.Type == gjson.Number {
			d.Max = max(int(most.Int()), 1)
		}
	}
	source := parameters.Get("source").String()
	if source == "" {
		source = defaultSource(n)
	}
	if source == SourceTable {
		if of := tables.Located([]byte(parameters.Get(tables.Parameter).Raw)); len(of.Name) > 0 && of.Name[0] != '=' && (of.ID == "" || of.ID[0] != '=') {
			d.Table = of
		}
	}
	return d
}
