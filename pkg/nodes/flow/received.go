package flow

import (
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Received is what an Execute Sub-workflow Trigger makes of the items that its
// workflow is called with. From version 1.1 on, unless it accepts all data, it keeps
// the fields it declares and gives null to those that did not come; a trigger that
// declares none, and any other node, gives all items on. The values are taken as they
// are: fitting them to types is up to the caller. The error tells that the
// trigger's example is no JSON object.
//
// The engine settles triggers without running node code, so whoever starts a child
// calls this on its input.
func Received(trigger *workflow.Node, items workflow.Items) (workflow.Items, error) {
	if trigger.Type != base+"executeWorkflowTrigger" || trigger.TypeVersion < 1.1 {
		return items, nil
	}
	names, err := declared(trigger)
	if err != nil || len(names) == 0 {
		return items, err
	}
	kept := make(workflow.Items, len(items))
	for i, item := range items {
		given := jsonobject.Parse(item.JSON)
		var o jsonobject.Object
		for _, name := range names {
			o.Set(name, orNull(given.Get(name)))
		}
		item.JSON = o.JSON()
		kept[i] = item
	}
	return kept, nil
}

// declared lists the fields that a trigger asks for.
func declared(trigger *workflow.Node) ([]string, error) {
	p := gjson.ParseBytes(trigger.Parameters)
	var names []string
	switch p.Get("inputSource").Str {
	case "passthrough":
	case "jsonExample":
		example := p.Get("jsonExample")
		if example.Type == gjson.String {
			if !gjson.Valid(example.Str) {
				return nil, fmt.Errorf("the JSON example of %q is not valid JSON", trigger.Name)
			}
			example = gjson.Parse(example.Str)
		}
		if !example.IsObject() {
			return nil, fmt.Errorf("the JSON example of %q is not an object", trigger.Name)
		}
		for _, m := range jsonobject.Parse(example.Raw).Members() {
			names = append(names, m.Key)
		}
	default:
		p.Get("workflowInputs.values").ForEach(func(_, f gjson.Result) bool {
			if name := f.Get("name").String(); name != "" {
				names = append(names, name)
			}
			return true
		})
	}
	return names, nil
}
