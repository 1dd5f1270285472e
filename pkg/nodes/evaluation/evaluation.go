package evaluation

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/nodes/tables"
	"github.com/reprise-engine/reprise/pkg/table"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// firstRow is the trigger when nobody gave it a row.
func firstRow(ctx context.Context, call *node.Call) (*node.Result, error) {
	if given := call.Input(0); len(given) > 0 && string(given[0].JSON) != "{}" {
		return passed(given), nil
	}
	source, err := source(ctx, call, 0)
	if err != nil {
		return nil, err
	}
	if source != SourceTable {
		return nil, node.OperationError(-1, "there is no row to begin with, and Google Sheets are not read here",
			"Give rows with `reprise evaluate --rows FILE`, or one with `reprise run --input`.")
	}
	of, err := tables.Reference(ctx, call, 0)
	if err != nil {
		return nil, err
	}
	answer, err := tables.Ask(ctx, call, 0, &table.Request{
		Do: table.Rows, Table: of, Operations: []table.Operation{{Do: table.Get, OrderBy: table.ColumnID, Limit: 1}},
	})
	if err != nil {
		return nil, err
	}
	rows := answer.Results[0].Rows
	if len(rows) == 0 {
		return nil, node.OperationError(-1, fmt.Sprintf("the data table %q has no rows", answer.Table.Name),
			"Import some with `reprise tables import`, or give rows with `reprise evaluate --rows FILE`.")
	}
	return node.Outputs(workflow.Items{{JSON: rows[0]}}), nil
}

func source(ctx context.Context, call *node.Call, item int) (string, error) {
	said, err := call.String(ctx, item, "source", defaultSource(call.Node))
	if err == nil && said != SourceTable && said != SourceSheets {
		err = node.Unknown(item, "source", said, SourceTable, SourceSheets)
	}
	return said, err
}

func passed(items workflow.Items) *node.Result {
	out := make(workflow.Items, len(items))
	for i, item := range items {
		out[i] = node.Passed(item, i, 0)
	}
	return node.Outputs(out)
}

func execute(ctx context.Context, call *node.Call) (*node.Result, error) {
	// The operation decides how many outputs there are, so it is as the file has it.
	switch operation := Operation(call.Node); operation {
	case SetInputs:
		return passed(call.Input(0)), nil
	case CheckIfEvaluating:
		result := passed(call.Input(0))
		if call.Execution.Mode == Mode {
			return node.Outputs(result.Outputs[0], nil), nil
		}
		return node.Outputs(nil, result.Outputs[0]), nil
	case SetMetrics:
		return call.ByItem(ctx, func(i int) (workflow.Items, error) {
			made, err := metrics(ctx, call, i)
			return workflow.Items{{JSON: made}}, err
		})
	case SetOutputs:
		return call.ByItem(ctx, func(i int) (workflow.Items, error) { return outputs(ctx, call, i) })
	default:
		return nil, node.Unknown(0, "operation", operation, SetInputs, SetOutputs, SetMetrics, CheckIfEvaluating)
	}
}

// outputs is an item with its outputs, which are in the row of the dataset then, too.
func outputs(ctx context.Context, call *node.Call, i int) (workflow.Items, error) {
	var said []struct {
		Name  string          `json:"outputName"`
		Value json.RawMessage `json:"outputValue"`
	}
	if err := call.ParamInto(ctx, i, "outputs.values", &said); err != nil {
		return nil, err
	}
	var made jsonobject.Object
	for n, output := range said {
		if output.Name == "" {
			return nil, node.OperationError(i, fmt.Sprintf("output %d has no name", n+1), "parameter outputs.values")
		}
		if len(output.Value) == 0 { // what its expression gives is undefined
			output.Value = json.RawMessage("null")
		}
		made.Set(output.Name, string(output.Value))
	}
	if call.Execution.Mode == Mode && made.Len() > 0 {
		if err := write(ctx, call, i, made.JSON()); err != nil {
			return nil, err
		}
	}
	item := call.Input(0)[i]
	object := jsonobject.Parse(item.JSON)
	for _, m := range made.Members() {
		object.Set(m.Key, m.Value)
	}
	item.JSON = object.JSON()
	return workflow.Items{item}, nil
}

// write updates the row of the dataset, if it has an id there.
func write(ctx context.Context, call *node.Call, i int, values json.RawMessage) error {
	from, err := source(ctx, call, i)
	if err != nil || from != SourceTable {
		return err
	}
	row, err := call.Param(ctx, i, ParameterRow)
	if err != nil || len(row) == 0 || string(row) == "null" {
		return err
	}
	of, err := tables.Reference(ctx, call, i)
	if err != nil {
		return err
	}
	answer, err := tables.Ask(ctx, call, i, &table.Request{
		Key: tables.Key(call, i), Do: table.Rows, Table: of,
		Operations: []table.Operation{{
			Do: table.Update, Values: values,
			Filter: table.Filter{Conditions: []table.Condition{{Column: table.ColumnID, Operator: "eq", Value: row}}},
		}},
	})
	if err == nil && answer.Results[0].Count == 0 {
		err = node.OperationError(i, fmt.Sprintf("the data table %q has no row %s any more", answer.Table.Name, row), "")
	}
	return err
}
