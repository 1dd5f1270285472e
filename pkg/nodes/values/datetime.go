package values

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// DateTime is Date & Time from version 2 on.
func DateTime() *node.Type {
	return &node.Type{
		Spec:    workflow.Spec{Type: base + "dateTime", Versions: []float64{2}},
		Execute: oneByOne(dateTimeItem),
	}
}

// dates reads the parameters of one item.
type dates struct {
	ctx  context.Context
	call *node.Call
	item int
	// zone is the workflow's; plain is that of dates which name none.
	zone, plain *time.Location
	// message is the failure of a date that cannot be read.
	message string
}

func datesOf(ctx context.Context, call *node.Call, i int) (*dates, error) {
	zone, err := zoneOf(call.Workflow.Timezone)
	if err != nil {
		return nil, node.OperationError(i, err.Error(), "Set the time zone in the workflow's settings.")
	}
	return &dates{ctx, call, i, zone, time.UTC, "Invalid date format"}, nil
}

// operations of version 2, each with the name of its field.
var operations = map[string]struct {
	field string
	value func(*dates) (string, error)
}{
	"getCurrentDate":      {"currentDate", (*dates).current},
	"addToDate":           {"newDate", func(d *dates) (string, error) { return d.add(1) }},
	"subtractFromDate":    {"newDate", func(d *dates) (string, error) { return d.add(-1) }},
	"formatDate":          {"formattedDate", (*dates).formatted},
	"getTimeBetweenDates": {"timeDifference", (*dates).difference},
	"extractDate":         {"datePart", (*dates).part},
	"roundDate":           {"roundedDate", (*dates).rounded},
}

func dateTimeItem(ctx context.Context, call *node.Call, i int) (workflow.Item, error) {
	var none workflow.Item
	d, err := datesOf(ctx, call, i)
	if err != nil {
		return none, err
	}
	name, err := call.String(ctx, i, "operation", "getCurrentDate")
	if err != nil {
		return none, err
	}
	operation, ok := operations[name]
	if !ok {
		return none, node.Unknown(i, "operation", name, "addToDate", "extractDate", "formatDate", "getCurrentDate", "getTimeBetweenDates", "roundDate", "subtractFromDate")
	}
	field, err := call.String(ctx, i, "outputFieldName", operation.field)
	if err != nil {
		return none, err
	}
	include, err := call.Bool(ctx, i, "options.includeInputFields", false)
	if err != nil {
		return none, err
	}
	value, err := operation.value(d)
	if err != nil {
		return none, err
	}
	item := workflow.Item{}
	if include {
		item = call.Input(0)[i]
	}
	return withField(item, field, value), nil
}

// date reads a date in a parameter, in the workflow's zone.
func (d *dates) date(path string) (time.Time, error) {
	value, err := d.call.Param(d.ctx, d.item, path)
	if err != nil {
		return time.Time{}, err
	}
	t, err := readDate(value, d.plain)
	if err != nil {
		return time.Time{}, d.invalid(path, err)
	}
	return t.In(d.zone), nil
}

// invalid is the failure of a date, with the reason in the description.
func (d *dates) invalid(path string, err error) error {
	return node.OperationError(d.item, d.message, "parameter "+path+": "+err.Error())
}

// iso writes a date as JSON; there are none outside of JavaScript's range.
func (d *dates) iso(t time.Time) (string, error) {
	if year := t.Year(); year < -271820 || year > 275759 {
		return "", node.OperationError(d.item, "The date is out of range", fmt.Sprintf("it would be in the year %d", year))
	}
	return jsonobject.Quote(t.Format(isoFormat)), nil
}

func (d *dates) current() (string, error) {
	withTime, err := d.call.Bool(d.ctx, d.item, "includeTime", true)
	if err != nil {
		return "", err
	}
	name, err := d.call.String(d.ctx, d.item, "options.timezone", "")
	if err != nil {
		return "", err
	}
	zone := d.zone
	if name != "" {
		if zone, err = zoneOf(name); err != nil {
			return "", node.OperationError(d.item, err.Error(), "parameter options.timezone")
		}
	}
	now := d.call.Now().In(zone)
	if !withTime {
		now = startOf(now, "day")
	}
	return d.iso(now)
}

func (d *dates) add(sign float64) (string, error) {
	t, err := d.date("magnitude")
	if err != nil {
		return "", err
	}
	unit, err := d.unit("timeUnit", "days")
	if err != nil {
		return "", err
	}
	duration, err := d.number("duration")
	if err != nil {
		return "", err
	}
	return d.iso(addUnits(t, sign*duration, unit))
}

// number reads a number that need not be whole.
func (d *dates) number(path string) (float64, error) {
	value, err := d.call.Param(d.ctx, d.item, path)
	if err != nil {
		return 0, err
	}
	parsed := gjson.ParseBytes(value)
	if parsed.Type == gjson.String && !isNumber(parsed.Str) || parsed.IsObject() || parsed.IsArray() {
		return 0, node.OperationError(d.item, fmt.Sprintf("%s is no number", parsed.Raw), "parameter "+path)
	}
	n := parsed.Float()
	if parsed.Type == gjson.String {
		n = gjson.Parse(strings.TrimSpace(parsed.Str)).Float()
	}
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return 0, node.OperationError(d.item, fmt.Sprintf("%s is no number", parsed.Raw), "parameter "+path)
	}
	return n, nil
}

func (d *dates) unit(path, fallback string) (string, error) {
	name, err := d.call.String(d.ctx, d.item, path, fallback)
	if err != nil {
		return "", err
	}
	unit, ok := unitOf(name)
	if !ok {
		return "", node.Unknown(d.item, path, name, units...)
	}
	return unit, nil
}

// formatted writes a date in a format. It is in UTC, or in the workflow's zone when the
// option timezone says so; a text that options.fromFormat reads is of the workflow's zone.
func (d *dates) formatted() (string, error) {
	t, err := d.input("date", "options.fromFormat", luxonLayout, d.zone)
	if err != nil {
		return "", err
	}
	local, err := d.call.Bool(d.ctx, d.item, "options.timezone", false)
	if err != nil {
		return "", err
	}
	zone := time.UTC
	if local {
		zone = d.zone
	}
	format, err := d.call.String(d.ctx, d.item, "format", "MM/dd/yyyy")
	if err == nil && format == "custom" {
		format, err = d.call.String(d.ctx, d.item, "customFormat", "")
	}
	if err != nil {
		return "", err
	}
	return jsonobject.Quote(luxonLayout(format).format(t.In(zone))), nil
}

// input reads a date with a format of the author's, when one is given.
func (d *dates) input(path, formatPath string, read func(string) layout, zone *time.Location) (time.Time, error) {
	format, err := d.call.String(d.ctx, d.item, formatPath, "")
	if err != nil {
		return time.Time{}, err
	}
	if format == "" {
		return d.date(path)
	}
	text, err := d.call.String(d.ctx, d.item, path, "")
	if err != nil {
		return time.Time{}, err
	}
	t, err := read(format).parse(strings.TrimSpace(text), zone, d.call.Now())
	if err != nil {
		return time.Time{}, d.invalid(path, fmt.Errorf("format %s: %w", format, err))
	}
	return t, nil
}

func (d *dates) difference() (string, error) {
	start, err := d.date("startDate")
	if err != nil {
		return "", err
	}
	end, err := d.date("endDate")
	if err != nil {
		return "", err
	}
	names, err := d.call.Param(d.ctx, d.item, "units")
	if err != nil {
		return "", err
	}
	var asked []string
	switch list := gjson.ParseBytes(names); {
	case list.Type == gjson.String && strings.HasPrefix(strings.TrimSpace(list.Str), "["):
		asked = textsOf(json.RawMessage(list.Str))
	case list.Type == gjson.String:
		asked = strings.Split(list.Str, ",")
	case list.IsArray():
		asked = textsOf(names)
	default:
		asked = []string{"day"}
	}
	for i, name := range asked {
		unit, ok := unitOf(strings.TrimSpace(name))
		if !ok {
			return "", node.Unknown(d.item, "units", name, units...)
		}
		asked[i] = unit
	}
	asISO, err := d.call.Bool(d.ctx, d.item, "options.isoString", false)
	if err != nil {
		return "", err
	}
	if list := between(start, end, asked); asISO {
		return jsonobject.Quote(amountsISO(list)), nil
	} else {
		return amountsObject(list), nil
	}
}

func textsOf(raw json.RawMessage) []string {
	var list []string
	for _, element := range gjson.ParseBytes(raw).Array() {
		list = append(list, element.String())
	}
	return list
}

func (d *dates) part() (string, error) {
	t, err := d.date("date")
	if err != nil {
		return "", err
	}
	name, err := d.call.String(d.ctx, d.item, "part", "month")
	if err != nil {
		return "", err
	}
	_, week := t.ISOWeek()
	parts := map[string]int{
		"year": t.Year(), "month": int(t.Month()), "week": week, "day": t.Day(),
		"hour": t.Hour(), "minute": t.Minute(), "second": t.Second(),
	}
	value, ok := parts[name]
	if !ok {
		return "", node.Unknown(d.item, "part", name, "year", "month", "week", "day", "hour", "minute", "second")
	}
	return fmt.Sprint(value), nil
}

// rounded goes to the beginning of a unit, or of the one that follows.
func (d *dates) rounded() (string, error) {
	t, err := d.date("date")
	if err != nil {
		return "", err
	}
	mode, err := d.call.String(d.ctx, d.item, "mode", "roundDown")
	if err != nil {
		return "", err
	}
	switch mode {
	case "roundDown":
		unit, err := d.unit("toNearest", "month")
		if err != nil {
			return "", err
		}
		return d.iso(startOf(t, unit))
	case "roundUp":
		unit, err := d.unit("to", "month")
		if err != nil {
			return "", err
		}
		return d.iso(addUnits(startOf(t, unit), 1, unit))
	}
	return "", node.Unknown(d.item, "mode", mode, "roundDown", "roundUp")
}
