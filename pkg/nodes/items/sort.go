package items

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Sort puts items in the order of fields, of code, or in a random one.
func Sort() *node.Type {
	return &node.Type{
		Spec:    workflow.Spec{Type: base + "sort", Versions: []float64{1}},
		Execute: sortItems,
	}
}

func sortItems(ctx context.Context, call *node.Call) (*node.Result, error) {
	kind, err := choice(ctx, call, 0, "type", "simple")
	if err != nil {
		return nil, err
	}
	switch kind {
	case "simple":
		return sortByFields(ctx, call)
	case "random":
		return shuffled(call), nil
	case "code":
		return sortByCode(ctx, call)
	}
	return nil, node.OperationError(-1, "The sort type '"+kind+"' is unknown", "Choose simple, random or code.")
}

// sortField is a field to sort by.
type sortField struct {
	name       string
	descending bool
}

func sortFields(ctx context.Context, call *node.Call) ([]sortField, error) {
	rows, err := value(ctx, call, 0, "sortFieldsUi.sortField")
	if err != nil {
		return nil, err
	}
	var fields []sortField
	for _, row := range rows.Array() {
		name := row.Get("fieldName")
		if name.Type == gjson.JSON {
			return nil, notAName(0, "fieldName", name)
		}
		order := row.Get("order").String()
		if order != "" && order != "ascending" && order != "descending" {
			return nil, node.OperationError(-1, "The order '"+order+"' is unknown", "Choose ascending or descending.")
		}
		if text := strings.TrimSpace(name.String()); text != "" {
			fields = append(fields, sortField{text, order == "descending"})
		}
	}
	if len(fields) == 0 {
		return nil, node.OperationError(-1, "No sorting specified. Please add a field to sort by", "")
	}
	return fields, nil
}

func sortByFields(ctx context.Context, call *node.Call) (*node.Result, error) {
	fields, err := sortFields(ctx, call)
	if err != nil {
		return nil, err
	}
	dots, err := dotted(ctx, call)
	if err != nil {
		return nil, err
	}
	type entry struct {
		item workflow.Item
		keys []gjson.Result
	}
	items := passAll(call)
	entries := make([]entry, len(items))
	found := make([]bool, len(fields))
	for i, item := range items {
		object := jsonobject.Parse(item.JSON)
		entries[i] = entry{item: item, keys: make([]gjson.Result, len(fields))}
		for f, field := range fields {
			raw := get(object, field.name, dots)
			found[f] = found[f] || raw != ""
			entries[i].keys[f] = lower(gjson.Parse(raw))
		}
	}
	for f, field := range fields {
		if !found[f] && len(items) > 0 {
			return nil, node.OperationError(-1, "Couldn't find the field '"+field.name+"' in the input data", nestedAdvice(field.name, dots))
		}
	}
	slices.SortStableFunc(entries, func(a, b entry) int {
		for f, field := range fields {
			if order := compare(a.keys[f], b.keys[f], field.descending); order != 0 {
				return order
			}
		}
		return 0
	})
	for i := range entries {
		items[i] = entries[i].item
	}
	return node.Outputs(items), nil
}

// shuffled puts the items in a random order, which a repetition of the run
// finds again.
func shuffled(call *node.Call) *node.Result {
	items := passAll(call)
	random := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) // an order, not a secret
	if call.IdempotencyKey != "" {
		sum := fnv.New64a()
		_, _ = sum.Write([]byte(call.IdempotencyKey)) // it never fails
		random = rand.New(rand.NewPCG(sum.Sum64(), 0))
	}
	random.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	return node.Outputs(items)
}

var returns = regexp.MustCompile(`\breturn\b`)

// sortByCode sorts by the code of a comparison of the items a and b, which is
// the body of a function.
func sortByCode(ctx context.Context, call *node.Call) (*node.Result, error) {
	items := passAll(call)
	raw := gjson.GetBytes(call.Node.Parameters, "code")
	if !raw.Exists() {
		return node.Outputs(items), nil // the editor's example, which changes nothing
	}
	code := raw.String()
	if !returns.MatchString(code) {
		return nil, node.OperationError(-1, "Sort code doesn't return. Please add a 'return' statement to your code", "")
	}
	if call.RunScript == nil {
		return nil, errors.New("this process runs no scripts")
	}
	script, err := call.RunScript(ctx, call, node.Script{Item: -1, Code: "" +
		"const compare = (a, b) => {\n" + code + "\n};\n" +
		"const list = $input.all().map((item, index) => ({ item, index }));\n" +
		"list.sort((a, b) => compare(a.item, b.item));\n" +
		"return list.map((entry) => entry.index);"})
	if err != nil {
		return nil, err
	}
	var order []int
	if err := json.Unmarshal(script.Value, &order); err != nil || !permutation(order, len(items)) {
		return nil, node.OperationError(-1, "The sort code did not leave the items as they are", "It has to compare a and b, and return a number.")
	}
	out := make(workflow.Items, len(order))
	for to, from := range order {
		out[to] = items[from]
	}
	return &node.Result{Result: engine.Result{Outputs: []workflow.Items{out}, Logs: script.Logs}}, nil
}

// permutation reports whether order has each of the numbers below n once.
func permutation(order []int, n int) bool {
	seen := make([]bool, n)
	for _, i := range order {
		if i < 0 || i >= n || seen[i] {
			return false
		}
		seen[i] = true
	}
	return len(order) == n
}
