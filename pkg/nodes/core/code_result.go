package core

import (
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// itemKeys are the keys an item may have beside "json".
var itemKeys = map[string]bool{"json": true, "binary": true, "pairedItem": true, "error": true, "index": true}

func noItems() *engine.NodeError {
	return &engine.NodeError{
		Message:     "Code doesn't return items properly",
		Description: "Please return an array of objects, one for each item you would like to output.",
	}
}

func invalidItem(item int, message, description string) *engine.NodeError {
	return &engine.NodeError{
		Message: fmt.Sprintf("%s [item %d]", message, item), Description: description, ItemIndex: &item,
	}
}

func notAnObject(item int, key string) *engine.NodeError {
	return invalidItem(item, "A '"+key+"' property isn't an object",
		"In the returned data, every key named '"+key+"' must point to an object.")
}

// itemsOf makes items of what code for all items returned: items, plain
// objects, one of either, or null for no items.
func itemsOf(script *node.ScriptResult) (workflow.Items, *engine.NodeError) {
	value := scriptValue(script)
	if value.Exists() && value.Type == gjson.Null {
		return workflow.Items{}, nil
	}
	list := []gjson.Result{value}
	switch {
	case value.IsArray():
		list = value.Array()
	case !value.IsObject():
		return nil, noItems()
	}
	wrapped, plain := 0, 0
	for _, element := range list {
		if !element.IsObject() {
			return nil, noItems()
		}
		if element.Get("json").Exists() || element.Get("binary").Exists() || element.Get("pairedItem").Exists() {
			wrapped++
		}
		if !element.Get("json").Exists() && !element.Get("binary").Exists() {
			plain++
		}
	}
	if wrapped > 0 && value.IsArray() {
		for i, element := range list {
			if failure := checkKeys(element, i); failure != nil {
				return nil, failure
			}
		}
	}
	if plain > 0 && plain < len(list) {
		return nil, &engine.NodeError{Message: "Inconsistent item format", Description: "Give all items a 'json' key, or none of them."}
	}
	items := make(workflow.Items, 0, len(list))
	for i, element := range list {
		if plain > 0 {
			items = append(items, workflow.Item{JSON: json.RawMessage(element.Raw)})
			continue
		}
		item, failure := readItem(element, i)
		if failure != nil {
			return nil, failure
		}
		items = append(items, item)
	}
	return items, nil
}

// checkKeys refuses items with keys beside the known ones: either the data was
// not put under "json", or it has a field of that name.
func checkKeys(element gjson.Result, i int) *engine.NodeError {
	known, unknown := "", ""
	element.ForEach(func(key, _ gjson.Result) bool {
		switch {
		case itemKeys[key.Str] && known == "":
			known = key.Str
		case !itemKeys[key.Str] && unknown == "":
			unknown = key.Str
		}
		return true
	})
	switch {
	case unknown == "":
		return nil
	case known == "":
		return invalidItem(i, "Unknown top-level item key: "+unknown,
			"Access the properties of an item under `.json`, e.g. `item.json`")
	}
	return invalidItem(i, "Invalid output format",
		"An output item contains the reserved key <code>"+known+"</code>. To get around this, please wrap each item in an object, under a key called <code>json</code>. "+
			`<a href="https://docs.n8n.io/data/data-structure/#data-structure" target="_blank">Example</a>`)
}

func readItem(element gjson.Result, i int) (workflow.Item, *engine.NodeError) {
	item := workflow.Item{JSON: json.RawMessage(`{}`)}
	if value := element.Get("json"); value.Exists() {
		if !value.IsObject() {
			return item, notAnObject(i, "json")
		}
		item.JSON = json.RawMessage(value.Raw)
	}
	if failure := readFiles(&item, element, i); failure != nil {
		return item, failure
	}
	if paired := element.Get("pairedItem"); paired.Exists() {
		if err := json.Unmarshal([]byte(paired.Raw), &item.PairedItem); err != nil {
			return item, invalidItem(i, "A 'pairedItem' property is neither a number, an item reference nor a list of them", "")
		}
	}
	if failure := element.Get("error"); failure.Exists() && failure.Type != gjson.Null {
		item.Error = json.RawMessage(failure.Raw)
	}
	return item, nil
}

func readFiles(item *workflow.Item, element gjson.Result, i int) *engine.NodeError {
	files := element.Get("binary")
	if files.Type == gjson.Null {
		return nil
	}
	if !files.IsObject() || json.Unmarshal([]byte(files.Raw), &item.Binary) != nil {
		return notAnObject(i, "binary")
	}
	return nil
}

// itemOf makes an item of what code for each item returned: an item, or its
// json. keep is false for what JavaScript takes for false: the item is left out.
func itemOf(script *node.ScriptResult, i int) (item workflow.Item, keep bool, failure *engine.NodeError) {
	value := scriptValue(script)
	switch {
	case script != nil && script.Type == "function":
		return item, false, notAnObject(i, "json")
	case value.Type == gjson.Null, value.Type == gjson.False,
		value.Type == gjson.Number && value.Num == 0, value.Type == gjson.String && value.Str == "":
		return item, false, nil
	}
	data := value
	if value.IsObject() && value.Get("json").Exists() {
		data = value.Get("json")
	}
	if !data.IsObject() {
		return item, false, notAnObject(i, "json")
	}
	item = workflow.Item{JSON: json.RawMessage(data.Raw), PairedItem: workflow.Paired(i)}
	if value.IsObject() {
		failure = readFiles(&item, value, i)
	}
	return item, failure == nil, failure
}
