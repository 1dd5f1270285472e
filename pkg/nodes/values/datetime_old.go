package values

import (
	"context"
	"time"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// DateTimeOld is Date & Time before version 2: formats are Moment's, and the result is a
// field more of the item.
func DateTimeOld() *node.Type {
	return &node.Type{
		Spec:    workflow.Spec{Type: base + "dateTime", Versions: []float64{1}},
		Execute: oneByOne(dateTimeOldItem),
	}
}

func dateTimeOldItem(ctx context.Context, call *node.Call, i int) (workflow.Item, error) {
	var none workflow.Item
	d, err := datesOf(ctx, call, i)
	if err != nil {
		return none, err
	}
	d.plain, d.message = d.zone, `The date input format could not be recognized. Please set the "From Format" field`
	action, err := call.String(ctx, i, "action", "format")
	if err != nil {
		return none, err
	}
	field, err := call.String(ctx, i, "dataPropertyName", "data")
	if err != nil {
		return none, err
	}
	var value string
	switch action {
	case "format":
		value, err = d.oldFormat()
	case "calculate":
		value, err = d.oldCalculate()
	default:
		err = node.Unknown(i, "action", action, "calculate", "format")
	}
	if err != nil {
		return none, err
	}
	return withField(call.Input(0)[i], field, value), nil
}

// oldZone reads one of the options with a zone; without it the workflow's counts.
func (d *dates) oldZone(path string) (*time.Location, error) {
	name, err := d.call.String(d.ctx, d.item, path, "")
	if err != nil || name == "" {
		return d.zone, err
	}
	zone, err := zoneOf(name)
	if err != nil {
		return nil, node.OperationError(d.item, err.Error(), "parameter "+path)
	}
	return zone, nil
}

func (d *dates) oldFormat() (string, error) {
	from, err := d.oldZone("options.fromTimezone")
	if err != nil {
		return "", err
	}
	to, err := d.oldZone("options.toTimezone")
	if err != nil {
		return "", err
	}
	d.plain = from
	t, err := d.input("value", "options.fromFormat", momentLayout, from)
	if err != nil {
		return "", err
	}
	format, err := d.call.String(d.ctx, d.item, "toFormat", "MM/DD/YYYY")
	if err != nil {
		return "", err
	}
	return jsonobject.Quote(momentLayout(format).format(t.In(to))), nil
}

// oldCalculate adds or subtracts; its result is in UTC.
func (d *dates) oldCalculate() (string, error) {
	t, err := d.input("value", "options.fromFormat", momentLayout, d.zone)
	if err != nil {
		return "", err
	}
	operation, err := d.call.String(d.ctx, d.item, "operation", "add")
	if err != nil {
		return "", err
	}
	sign := 1.0
	switch operation {
	case "subtract":
		sign = -1
	case "add":
	default:
		return "", node.Unknown(d.item, "operation", operation, "add", "subtract")
	}
	unit, err := d.unit("timeUnit", "days")
	if err != nil {
		return "", err
	}
	duration, err := d.number("duration")
	if err != nil {
		return "", err
	}
	return d.iso(addUnits(t.In(d.zone), sign*duration, unit).UTC())
}
