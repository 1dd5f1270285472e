package items

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Aggregate makes one item of all: lists of the values of fields, or one list of
// the items' data.
func Aggregate() *node.Type {
	return &node.Type{
		Spec:    workflow.Spec{Type: base + "aggregate", Versions: []float64{1}},
		Inline:  true,
		Execute: aggregate,
	}
}

func aggregate(ctx context.Context, call *node.Call) (*node.Result, error) {
	kind, err := choice(ctx, call, 0, "aggregate", "aggregateIndividualFields")
	if err != nil {
		return nil, err
	}
	switch kind {
	case "aggregateIndividualFields":
		return aggregateFields(ctx, call, false)
	case "aggregateAllItemData":
		return aggregateAll(ctx, call)
	}
	return nil, node.OperationError(-1, "The value '"+kind+"' of 'Aggregate' is unknown", "Choose aggregateIndividualFields or aggregateAllItemData.")
}

// aggregated is a field to make a list of.
type aggregated struct{ field, output string }

// aggregateFields makes a list of each field's values. required is that every
// field is in some item.
func aggregateFields(ctx context.Context, call *node.Call, required bool) (*node.Result, error) {
	dots, err := dotted(ctx, call)
	if err != nil {
		return nil, err
	}
	fields, err := fieldsToAggregate(ctx, call, dots)
	if err != nil {
		return nil, err
	}
	merge, err := toggle(ctx, call, "options.mergeLists")
	if err != nil {
		return nil, err
	}
	keep, err := toggle(ctx, call, "options.keepMissing")
	if err != nil {
		return nil, err
	}
	items := call.Input(0)
	sources := make([]jsonobject.Object, len(items))
	for i, item := range items {
		sources[i] = jsonobject.Parse(item.JSON)
	}
	var object jsonobject.Object
	var missing []string
	for _, f := range fields {
		values, found := valuesOf(sources, f.field, dots, merge, keep)
		if !found {
			if required {
				return nil, node.OperationError(-1, "Couldn't find the field '"+f.field+"' in the input data", nestedAdvice(f.field, dots))
			}
			missing = append(missing, f.field)
		}
		put(&object, f.output, list(values), dots)
	}
	made := workflow.Item{JSON: object.JSON(), PairedItem: workflow.PairedWithAll(len(items))}
	if err := includeBinaries(ctx, call, &made); err != nil {
		return nil, err
	}
	result := node.Outputs(workflow.Items{made})
	for _, field := range missing {
		hint(result, "The field '"+field+"' wasn't found in any input item")
	}
	if len(fields) == 0 {
		hint(result, "No field to aggregate is named, so the item is empty. Name one in 'Fields To Aggregate'.")
	}
	return result, nil
}

// valuesOf lists the values of a field.
func valuesOf(sources []jsonobject.Object, field string, dots, merge, keep bool) (values []string, found bool) {
	for _, source := range sources {
		content := get(source, field, dots)
		found = found || content != ""
		if isNothing(content) {
			if keep {
				values = append(values, "null")
			}
			continue
		}
		if content[0] != '[' {
			values = append(values, content)
			continue
		}
		var elements []string
		for _, element := range gjson.Parse(content).Array() {
			if keep || element.Type != gjson.Null {
				elements = append(elements, element.Raw)
			}
		}
		if merge {
			values = append(values, elements...)
		} else {
			values = append(values, list(elements))
		}
	}
	return values, found
}

// fieldsToAggregate reads the fields and what their lists are called. Rows that
// were left blank do not count.
func fieldsToAggregate(ctx context.Context, call *node.Call, dots bool) ([]aggregated, error) {
	rows, err := value(ctx, call, 0, "fieldsToAggregate.fieldToAggregate")
	if err != nil {
		return nil, err
	}
	if rows.Exists() && len(rows.Array()) == 0 {
		return nil, node.OperationError(-1, "No fields specified", "Please add a field to aggregate")
	}
	var fields []aggregated
	taken := map[string]bool{}
	for _, row := range rows.Array() {
		name := row.Get("fieldToAggregate")
		if name.Type == gjson.JSON {
			return nil, notAName(0, "fieldToAggregate", name)
		}
		f := aggregated{field: name.String()}
		if f.field == "" {
			continue
		}
		f.output = f.field
		if dots {
			f.output = f.field[strings.LastIndexByte(f.field, '.')+1:]
		}
		if output := row.Get("outputFieldName").String(); row.Get("renameField").Bool() && output != "" {
			f.output = output
		}
		if taken[f.output] {
			return nil, node.OperationError(-1, "The '"+f.output+"' output field is used more than once", "Please make sure each output field name is unique")
		}
		taken[f.output] = true
		fields = append(fields, f)
	}
	return fields, nil
}

// aggregateAll makes one list of the data of all items.
func aggregateAll(ctx context.Context, call *node.Call) (*node.Result, error) {
	destination, err := choice(ctx, call, 0, "destinationFieldName", "data")
	if err != nil {
		return nil, err
	}
	if destination == "" {
		return nil, node.OperationError(-1, "No output field is named", "Enter the name of the field for the list in 'Put Output in Field'.")
	}
	include, err := choice(ctx, call, 0, "include", "allFields")
	if err != nil {
		return nil, err
	}
	wanted, err := wantedFields(ctx, call, include)
	if err != nil {
		return nil, err
	}
	items := call.Input(0)
	data := make([]string, 0, len(items))
	for _, item := range items {
		if wanted == nil {
			data = append(data, string(item.JSON))
			continue
		}
		var object jsonobject.Object
		for _, m := range jsonobject.Parse(item.JSON).Members() {
			if wanted(m.Key) {
				object.Set(m.Key, m.Value)
			}
		}
		if object.Len() > 0 {
			data = append(data, object.String())
		}
	}
	var object jsonobject.Object
	object.Set(destination, list(data))
	made := workflow.Item{JSON: object.JSON(), PairedItem: workflow.PairedWithAll(len(items))}
	if err := includeBinaries(ctx, call, &made); err != nil {
		return nil, err
	}
	return node.Outputs(workflow.Items{made}), nil
}

// wantedFields says which keys of the items are taken; nil is all.
func wantedFields(ctx context.Context, call *node.Call, include string) (func(key string) bool, error) {
	switch include {
	case "allFields":
		return nil, nil
	case "specifiedFields":
		fields, err := fieldNames(ctx, call, 0, "fieldsToInclude")
		if err != nil {
			return nil, err
		}
		if len(fields) == 0 {
			return nil, node.OperationError(-1, "No fields specified", "Please add a field to include")
		}
		return func(key string) bool { return slices.Contains(fields, key) }, nil
	case "allFieldsExcept":
		fields, err := fieldNames(ctx, call, 0, "fieldsToExclude")
		if err != nil {
			return nil, err
		}
		if len(fields) == 0 {
			return nil, node.OperationError(-1, "No fields specified", "Please add a field to exclude")
		}
		return func(key string) bool { return !slices.Contains(fields, key) }, nil
	}
	return nil, node.OperationError(-1, "The value '"+include+"' of 'Include' is unknown", "Choose allFields, specifiedFields or allFieldsExcept.")
}

// includeBinaries gives the item the files of all input items, if that is
// wanted. Files of one name are numbered; with keepOnlyUnique, equal ones are
// taken once.
func includeBinaries(ctx context.Context, call *node.Call, made *workflow.Item) error {
	include, err := toggle(ctx, call, "options.includeBinaries")
	if err != nil || !include {
		return err
	}
	unique, err := toggle(ctx, call, "options.keepOnlyUnique")
	if err != nil {
		return err
	}
	files := map[string]workflow.Binary{}
	known := map[workflow.Binary]bool{}
	for _, item := range call.Input(0) {
		for _, name := range fileNames(item) {
			file := item.Binary[name]
			if unique && known[file] {
				continue
			}
			known[file] = true
			key := name
			for n := 1; ; n++ {
				if _, taken := files[key]; !taken {
					break
				}
				key = name + "_" + strconv.Itoa(n)
			}
			files[key] = file
		}
	}
	if len(files) > 0 {
		made.Binary = files
	}
	return nil
}

// nestedAdvice helps who looks for a nested field without dot notation.
func nestedAdvice(field string, dots bool) string {
	if !dots && strings.Contains(field, ".") {
		return "If you're trying to use a nested field, make sure you turn off 'disable dot notation' in the node options"
	}
	return ""
}
