package tables

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/table"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// batchSize is how many items share a request. It is part of what a key stands for: a run that is
// repeated must ask the same.
const batchSize = 100

// run is the work of one run of the node.
type run struct {
	call  *node.Call
	table table.Ref // of the batch
	items []int     // whose operations are in the batch
	batch []table.Operation
	out   []workflow.Items // by item
}

func rows(ctx context.Context, call *node.Call) (*node.Result, error) {
	r := &run{call: call, out: make([]workflow.Items, len(call.Input(0)))}
	for i := range r.out {
		operation, of, err := read(ctx, call, i)
		if err != nil {
			if call.Survives(ctx, err) {
				r.out[i] = workflow.Items{node.ErrorItem(err.Error(), workflow.Paired(i))}
				continue
			}
			// The items before it are done, as they are one after the other.
			if err := r.send(ctx); err != nil {
				return nil, err
			}
			return nil, err
		}
		if of != r.table || len(r.batch) == batchSize {
			if err := r.send(ctx); err != nil {
				return nil, err
			}
		}
		r.table = of
		r.items, r.batch = append(r.items, i), append(r.batch, operation)
	}
	if err := r.send(ctx); err != nil {
		return nil, err
	}
	out := workflow.Items{}
	for _, items := range r.out {
		out = append(out, items...)
	}
	return &node.Result{Result: engine.Result{Outputs: []workflow.Items{out}}}, nil
}

// send has the batch done.
func (r *run) send(ctx context.Context) error {
	if len(r.batch) == 0 {
		return nil
	}
	items, batch := r.items, r.batch
	r.items, r.batch = nil, nil
	request := &table.Request{
		Key: Key(r.call, items[0]), Do: table.Rows, Table: r.table, Operations: batch,
		GoOn: r.call.Survives(ctx, &engine.NodeError{}),
	}
	answer, err := r.call.Tables(ctx, request)
	if err != nil {
		err = failed(err, items[0])
		if !r.call.Survives(ctx, err) {
			return err
		}
		for _, i := range items { // none of them was done
			r.out[i] = workflow.Items{node.ErrorItem(err.Error(), workflow.Paired(i))}
		}
		return nil
	}
	for n, result := range answer.Results {
		i := items[n]
		if result.Error != nil {
			err := failed(result.Error, i)
			if !r.call.Survives(ctx, err) {
				return err
			}
			r.out[i] = workflow.Items{node.ErrorItem(err.Error(), workflow.Paired(i))}
			continue
		}
		if r.out[i], err = put(ctx, r.call, i, &batch[n], &result); err != nil {
			return err
		}
	}
	if len(answer.Results) < len(batch) {
		return fmt.Errorf("data tables: %d of %d operations were answered", len(answer.Results), len(batch))
	}
	return nil
}

// put is what an item puts out.
func put(ctx context.Context, call *node.Call, i int, o *table.Operation, result *table.Result) (workflow.Items, error) {
	switch {
	case o.Do == table.Exists:
		wanted, err := call.String(ctx, i, "operation", "")
		if err != nil || (result.Count > 0) != (wanted == "rowExists") {
			return nil, err
		}
		return workflow.Items{node.Passed(call.Input(0)[i], i, 0)}, nil
	case o.Quiet:
		return workflow.Items{{JSON: fmt.Appendf(nil, `{"success":true,"insertedRows":%d}`, result.Count), PairedItem: workflow.Paired(i)}}, nil
	}
	items := workflow.Items{}
	for _, row := range result.Rows {
		items = append(items, workflow.Item{JSON: row, PairedItem: workflow.Paired(i)})
	}
	return items, nil
}

// read makes an operation of the parameters of an item.
func read(ctx context.Context, call *node.Call, i int) (o table.Operation, of table.Ref, err error) {
	operation, err := call.String(ctx, i, "operation", "insert")
	if err != nil {
		return o, of, err
	}
	if of, err = Reference(ctx, call, i); err != nil {
		return o, of, err
	}
	switch operation {
	case "insert":
		o.Do = table.Insert
		o.Quiet, err = call.Bool(ctx, i, "options.optimizeBulk", false)
	case "get":
		o.Do = table.Get
		err = readGet(ctx, call, i, &o)
	case "update":
		o.Do = table.Update
	case "upsert":
		o.Do = table.Upsert
	case "deleteRows":
		o.Do = table.Delete
	case "rowExists", "rowNotExists":
		o.Do = table.Exists
	default:
		err = node.Unknown(i, "operation", operation, "insert", "get", "update", "upsert", "deleteRows", "rowExists", "rowNotExists")
	}
	if err != nil {
		return o, of, err
	}
	switch o.Do {
	case table.Update, table.Upsert, table.Delete:
		if o.DryRun, err = call.Bool(ctx, i, "options.dryRun", false); err != nil {
			return o, of, err
		}
	}
	switch o.Do {
	case table.Insert, table.Update, table.Upsert:
		if o.Values, err = values(ctx, call, i); err != nil {
			return o, of, err
		}
	}
	if o.Do != table.Insert {
		o.Filter, err = filter(ctx, call, i)
	}
	return o, of, err
}

func readGet(ctx context.Context, call *node.Call, i int, o *table.Operation) (err error) {
	if o.Limit, err = limit(ctx, call, i); err != nil {
		return err
	}
	ordered, err := call.Bool(ctx, i, "orderBy", false)
	if err != nil || !ordered {
		return err
	}
	if o.OrderBy, err = call.String(ctx, i, "orderByColumn", table.ColumnCreated); err != nil {
		return err
	}
	direction, err := call.String(ctx, i, "orderByDirection", "DESC")
	o.Descending = strings.EqualFold(direction, "DESC")
	return err
}

// filter reads the conditions of an item.
func filter(ctx context.Context, call *node.Call, i int) (f table.Filter, err error) {
	match, err := call.String(ctx, i, "matchType", "anyCondition")
	if err != nil {
		return f, err
	}
	switch match {
	case "anyCondition":
		f.Any = true
	case "allConditions":
	default:
		return f, node.Unknown(i, "matchType", match, "anyCondition", "allConditions")
	}
	var conditions []struct {
		KeyName   string          `json:"keyName"`
		Condition string          `json:"condition"`
		KeyValue  json.RawMessage `json:"keyValue"`
	}
	if err := call.ParamInto(ctx, i, "filters.conditions", &conditions); err != nil {
		return f, err
	}
	for n, c := range conditions {
		if c.KeyName == "" {
			return f, node.OperationError(i, fmt.Sprintf("condition %d names no column", n+1), "parameter filters.conditions")
		}
		if c.Condition == "" {
			c.Condition = "eq"
		}
		f.Conditions = append(f.Conditions, table.Condition{Column: c.KeyName, Operator: c.Condition, Value: c.KeyValue})
	}
	return f, nil
}

// values reads what an item writes.
func values(ctx context.Context, call *node.Call, i int) (json.RawMessage, error) {
	mode, err := call.String(ctx, i, "columns.mappingMode", "defineBelow")
	if err != nil {
		return nil, err
	}
	var object jsonobject.Object
	switch mode {
	case "autoMapInputData":
		// What a row was read with goes through with it.
		for _, m := range jsonobject.Parse(call.Input(0)[i].JSON).Members() {
			if !table.System(m.Key) {
				object.Set(m.Key, m.Value)
			}
		}
	case "defineBelow":
		raw, err := call.Param(ctx, i, "columns.value")
		if err != nil {
			return nil, err
		}
		removed := map[string]bool{}
		for _, c := range gjson.ParseBytes(call.Raw("columns.schema")).Array() {
			removed[c.Get("id").String()] = c.Get("removed").Bool()
		}
		for _, m := range jsonobject.Parse(raw).Members() {
			if !removed[m.Key] {
				object.Set(m.Key, m.Value)
			}
		}
	default:
		return nil, node.Unknown(i, "columns.mappingMode", mode, "defineBelow", "autoMapInputData")
	}
	return object.JSON(), nil
}
