package tables

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/table"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// defaultLimit is how many rows or tables are put out unless the node says otherwise.
const defaultLimit = 50

func execute(ctx context.Context, call *node.Call) (*node.Result, error) {
	if err := present(call); err != nil {
		return nil, err
	}
	resource, err := call.String(ctx, 0, "resource", "row")
	if err != nil {
		return nil, err
	}
	switch resource {
	case "row":
		return rows(ctx, call)
	case "table":
		return call.ByItem(ctx, func(i int) (workflow.Items, error) { return manage(ctx, call, i) })
	}
	return nil, node.Unknown(0, "resource", resource, "row", "table")
}

// present refuses a call that is made where there are no tables.
func present(call *node.Call) error {
	if call.Tables == nil {
		return node.OperationError(-1, "there are no data tables here", "Run the workflow on coordinators and workers, or with reprise run.")
	}
	return nil
}

// Ask has a request fulfilled for an item. What the tables refuse, the first of its operations included, is
// the failure of the item.
func Ask(ctx context.Context, call *node.Call, item int, r *table.Request) (*table.Answer, error) {
	if err := present(call); err != nil {
		return nil, err
	}
	answer, err := call.Tables(ctx, r)
	if err != nil {
		return nil, failed(err, item)
	}
	for _, result := range answer.Results {
		if result.Error != nil {
			return nil, failed(result.Error, item)
		}
	}
	return answer, nil
}

// failed is the failure of an item by what the tables answered.
func failed(err error, item int) error {
	if refused := table.AsError(err); refused != nil {
		return node.OperationError(item, refused.Message, refused.Hint)
	}
	return err
}

// Key is the key of the request that begins with an item.
func Key(call *node.Call, item int) string { return fmt.Sprintf("%s/%d", call.IdempotencyKey, item) }

// Parameter is the resource locator of a table.
const Parameter = "dataTableId"

// Reference reads Parameter for an item.
func Reference(ctx context.Context, call *node.Call, i int) (table.Ref, error) {
	raw, err := call.Param(ctx, i, Parameter)
	if err != nil {
		return table.Ref{}, err
	}
	of := Located(raw)
	switch {
	case of == table.Ref{}:
		return of, node.OperationError(i, "no data table is chosen", "parameter "+Parameter+": choose a table by its name or id")
	case of.ID != "" && strings.HasPrefix(gjson.GetBytes(call.Raw(Parameter), "value").String(), "="):
		of.Name = of.ID // the name beside it is of what the expression gave once
	}
	return of, nil
}

// Located is the table of a resource locator that has no expressions any more; zero is none.
func Located(raw json.RawMessage) table.Ref {
	locator := gjson.ParseBytes(raw)
	if !locator.IsObject() {
		locator = gjson.Parse(`{"value":` + string(orNull(raw)) + `}`)
	}
	value, name := locator.Get("value").String(), locator.Get("cachedResultName").String()
	switch {
	case value == "":
		return table.Ref{}
	case locator.Get("mode").String() == "name":
		return table.Ref{Name: value}
	case name == "":
		return table.Ref{ID: value, Name: value}
	}
	return table.Ref{ID: value, Name: name}
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// limit reads how much is to be put out; 0 is all.
func limit(ctx context.Context, call *node.Call, i int) (int, error) {
	all, err := call.Bool(ctx, i, "returnAll", false)
	if err != nil || all {
		return 0, err
	}
	n, err := call.Int(ctx, i, "limit", defaultLimit)
	if err == nil && n < 1 {
		err = node.OperationError(i, fmt.Sprintf("a limit of %d is not possible", n), "parameter limit: choose 1 or more, or set returnAll")
	}
	return n, err
}

// manage does what is done with a table as a whole.
func manage(ctx context.Context, call *node.Call, i int) (workflow.Items, error) {
	operation, err := call.String(ctx, i, "operation", "list")
	if err != nil {
		return nil, err
	}
	r := &table.Request{Key: Key(call, i)}
	switch operation {
	case "list":
		return list(ctx, call, i)
	case "create":
		r.Do = table.Create
		if r.Name, err = call.String(ctx, i, "tableName", ""); err != nil {
			return nil, err
		}
		if err := call.ParamInto(ctx, i, "columns.column", &r.Columns); err != nil {
			return nil, err
		}
		for n := range r.Columns {
			if r.Columns[n].Type == "" {
				r.Columns[n].Type = table.String
			}
		}
		r.Reuse, err = call.Bool(ctx, i, "options.createIfNotExists", false)
	case "update":
		r.Do = table.Rename
		if r.Table, err = Reference(ctx, call, i); err == nil {
			r.Name, err = call.String(ctx, i, "newName", "")
		}
	case "delete":
		r.Do = table.Drop
		r.Table, err = Reference(ctx, call, i)
	default:
		err = node.Unknown(i, "operation", operation, "create", "list", "update", "delete")
	}
	if err != nil {
		return nil, err
	}
	answer, err := Ask(ctx, call, i, r)
	if err != nil {
		return nil, err
	}
	if r.Do == table.Drop {
		return workflow.Items{{JSON: json.RawMessage(`{"success":true}`)}}, nil
	}
	return workflow.Items{{JSON: shown(answer.Table)}}, nil
}

// shown is a table as an item.
func shown(t *table.Table) json.RawMessage {
	columns := []string{}
	for _, c := range t.Columns {
		columns = append(columns, `{"name":`+jsonobject.Quote(c.Name)+`,"type":`+jsonobject.Quote(c.Type)+`}`)
	}
	var o jsonobject.Object
	o.Set("id", jsonobject.Quote(t.ID))
	o.Set("name", jsonobject.Quote(t.Name))
	o.Set("columns", "["+strings.Join(columns, ",")+"]")
	o.Set("createdAt", jsonobject.Quote(table.Moment(t.CreatedAt)))
	o.Set("updatedAt", jsonobject.Quote(table.Moment(t.UpdatedAt)))
	return o.JSON()
}

func list(ctx context.Context, call *node.Call, i int) (workflow.Items, error) {
	most, err := limit(ctx, call, i)
	if err != nil {
		return nil, err
	}
	part, err := call.String(ctx, i, "options.filterName", "")
	if err != nil {
		return nil, err
	}
	field, err := call.String(ctx, i, "options.sortField", "name")
	if err != nil {
		return nil, err
	}
	if fields := []string{"name", "createdAt", "updatedAt"}; !slices.Contains(fields, field) {
		return nil, node.Unknown(i, "options.sortField", field, fields...)
	}
	direction, err := call.String(ctx, i, "options.sortDirection", "asc")
	if err != nil {
		return nil, err
	}
	answer, err := Ask(ctx, call, i, &table.Request{Do: table.List})
	if err != nil {
		return nil, err
	}
	tables := slices.DeleteFunc(answer.Tables, func(t table.Table) bool {
		return !strings.Contains(strings.ToLower(t.Name), strings.ToLower(part))
	})
	slices.SortStableFunc(tables, func(a, b table.Table) int {
		if strings.EqualFold(direction, "desc") {
			a, b = b, a
		}
		switch field {
		case "createdAt":
			return int(a.CreatedAt - b.CreatedAt)
		case "updatedAt":
			return int(a.UpdatedAt - b.UpdatedAt)
		}
		return strings.Compare(a.Name, b.Name)
	})
	if most > 0 && len(tables) > most {
		tables = tables[:most]
	}
	items := workflow.Items{}
	for n := range tables {
		items = append(items, workflow.Item{JSON: shown(&tables[n])})
	}
	return items, nil
}
