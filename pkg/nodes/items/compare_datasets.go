package items

import (
	"context"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// The outputs of Compare Datasets.
const (
	onlyInA = iota
	sameInBoth
	differentInBoth
	onlyInB
	comparisonOutputs
)

// CompareDatasets pairs the items of two inputs by fields and tells which are
// in one only, which are the same and which differ.
func CompareDatasets() *node.Type {
	return &node.Type{
		Spec: workflow.Spec{
			Type: base + "compareDatasets", Versions: []float64{1, 2, 2.1, 2.2, 2.3},
			Outputs: func(*workflow.Node) int { return comparisonOutputs },
		},
		Inline:  true,
		Execute: compareDatasets,
	}
}

// comparison is how two items are compared and what is put out when they
// differ.
type comparison struct {
	pairs       []fieldPair
	skip        []string
	dots, fuzzy bool
	all         bool // pair an item with all that match, not with the first
	resolve     string
	preferB     bool     // of a mix
	except      []string // of a mix
	names       [2]string
}

// fieldPair is a field of each input that must have the same value.
type fieldPair struct{ a, b string }

// candidate is an item of an input, made ready.
type candidate struct {
	item   workflow.Item
	object jsonobject.Object
	key    string // under which it is paired, "" for none
}

func compareDatasets(ctx context.Context, call *node.Call) (*node.Result, error) {
	c, err := readComparison(ctx, call)
	if err != nil {
		return nil, err
	}
	left, err := c.candidates(call, 0)
	if err != nil {
		return nil, err
	}
	right, err := c.candidates(call, 1)
	if err != nil {
		return nil, err
	}
	byKey := map[string][]int{}
	for j, b := range right {
		if b.key != "" && (c.all || len(byKey[b.key]) == 0) {
			byKey[b.key] = append(byKey[b.key], j)
		}
	}
	out := make([]workflow.Items, comparisonOutputs)
	paired := make([]bool, len(right))
	for _, a := range left {
		matches := byKey[a.key]
		if a.key == "" || len(matches) == 0 {
			out[onlyInA] = append(out[onlyInA], a.item)
			continue
		}
		for _, j := range matches {
			paired[j] = true
			if c.same(a, right[j]) {
				out[sameInBoth] = append(out[sameInBoth], a.item)
			} else {
				out[differentInBoth] = append(out[differentInBoth], c.resolved(a, right[j]))
			}
		}
	}
	for j, b := range right {
		if !paired[j] {
			out[onlyInB] = append(out[onlyInB], b.item)
		}
	}
	return node.Outputs(out...), nil
}

func readComparison(ctx context.Context, call *node.Call) (c comparison, err error) {
	c.names = [2]string{"inputA", "inputB"}
	standard := "includeBoth"
	if call.Node.TypeVersion < 2 {
		c.names = [2]string{"input1", "input2"}
		standard = "preferInput2"
	}
	rows, err := value(ctx, call, 0, "mergeByFields.values")
	if err != nil {
		return c, err
	}
	for _, row := range rows.Array() {
		if p := (fieldPair{row.Get("field1").String(), row.Get("field2").String()}); p.a != "" && p.b != "" {
			c.pairs = append(c.pairs, p)
		}
	}
	if len(c.pairs) == 0 {
		return c, node.OperationError(-1, "You need to define at least one pair of fields in \"Fields to Match\" to match on", "")
	}
	if c.resolve, err = choice(ctx, call, 0, "resolve", standard); err != nil {
		return c, err
	}
	switch c.resolve {
	case "preferInput1", "preferInput2", "mix", "includeBoth":
	default:
		return c, node.OperationError(-1, "The value '"+c.resolve+"' of 'When There Are Differences' is unknown",
			"Choose preferInput1, preferInput2, mix or includeBoth.")
	}
	prefer, err := choice(ctx, call, 0, "preferWhenMix", "input1")
	if err != nil {
		return c, err
	}
	c.preferB = strings.HasSuffix(prefer, "nput2")
	matches, err := choice(ctx, call, 0, "options.multipleMatches", "first")
	if err != nil {
		return c, err
	}
	c.all = matches == "all"
	for path, target := range map[string]*[]string{"exceptWhenMix": &c.except, "options.skipFields": &c.skip} {
		if *target, err = fieldNames(ctx, call, 0, path); err != nil {
			return c, err
		}
	}
	// Version 1 had it among the options.
	for _, path := range []string{"fuzzyCompare", "options.fuzzyCompare"} {
		on, err := toggle(ctx, call, path)
		if err != nil {
			return c, err
		}
		c.fuzzy = c.fuzzy || on
	}
	c.dots, err = dotted(ctx, call)
	return c, err
}

// candidates prepares the items of an input. A field that no item has is a
// mistake in the node.
func (c comparison) candidates(call *node.Call, in int) ([]candidate, error) {
	fields := make([]string, len(c.pairs))
	found := make([]bool, len(c.pairs))
	for f, p := range c.pairs {
		fields[f] = p.a
		if in == 1 {
			fields[f] = p.b
		}
	}
	items := call.Input(in)
	list := make([]candidate, len(items))
	for i, item := range items {
		list[i] = candidate{item: node.Passed(item, i, in), object: jsonobject.Parse(item.JSON)}
		var key strings.Builder
		complete := true
		for f, field := range fields {
			raw := get(list[i].object, field, c.dots)
			found[f] = found[f] || raw != ""
			complete = complete && (raw != "" || c.fuzzy)
			key.WriteString(c.comparable(raw))
			key.WriteByte(0)
		}
		if complete {
			list[i].key = key.String()
		}
	}
	for f, field := range fields {
		if !found[f] && len(items) > 0 {
			label := map[bool][2]string{true: {"Input 1", "Input 2"}, false: {"Input A", "Input B"}}[call.Node.TypeVersion < 2][in]
			return nil, node.OperationError(-1, "Field '"+field+"' is not present in any of items in '"+label+"'", nestedAdvice(field, c.dots))
		}
	}
	return list, nil
}

// comparable is the same text for equal values. Fuzzy ones are equal, too, when
// they are a number or a boolean and its text, or both empty.
func (c comparison) comparable(raw string) string {
	if !c.fuzzy {
		return canonical(raw)
	}
	switch found := gjson.Parse(raw); {
	case isNothing(raw), raw == `""`, raw == "{}", raw == "[]":
		return ""
	case found.Type == gjson.String:
		if number, ok := toNumber(found); ok && strings.TrimSpace(found.Str) != "" {
			return formatNumber(number)
		}
		if word := strings.ToLower(found.Str); word == "true" || word == "false" {
			return word
		}
	case found.Type == gjson.Number:
		return formatNumber(found.Num)
	}
	return canonical(raw)
}

// same compares all fields but those that are skipped. Paired fields of
// different names are not compared by name.
func (c comparison) same(a, b candidate) bool {
	for _, key := range c.keys(a, b) {
		if c.comparable(c.without(a, key)) != c.comparable(c.without(b, key)) {
			return false
		}
	}
	return true
}

// keys are the top-level fields of both, without those that need not be
// compared.
func (c comparison) keys(a, b candidate) []string {
	var keys []string
	seen := map[string]bool{}
	for _, p := range c.pairs {
		if p.a != p.b {
			seen[p.a], seen[p.b] = true, true
		}
	}
	for _, skipped := range c.skip {
		seen[skipped] = true
	}
	for _, side := range []candidate{a, b} {
		for _, m := range side.object.Members() {
			if !seen[m.Key] {
				seen[m.Key] = true
				keys = append(keys, m.Key)
			}
		}
	}
	return keys
}

// without is the value of a top-level field of one side, without the nested
// fields that are skipped.
func (c comparison) without(side candidate, key string) string {
	content := side.object.Get(key)
	if !c.dots || !strings.HasPrefix(content, "{") {
		return content
	}
	for _, skipped := range c.skip {
		if rest, ok := strings.CutPrefix(skipped, key+"."); ok {
			object := jsonobject.Parse(content)
			object.DeletePath(rest)
			content = object.String()
		}
	}
	return content
}
