package items

import (
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// resolved is what is put out for two items that differ.
func (c comparison) resolved(a, b candidate) workflow.Item {
	switch c.resolve {
	case "preferInput1":
		return a.item
	case "preferInput2":
		return b.item
	case "mix":
		return c.mixed(a, b)
	}
	return c.both(a, b)
}

// mixed is one side's item with some fields of the other.
func (c comparison) mixed(a, b candidate) workflow.Item {
	main, other := a, b
	if c.preferB {
		main, other = b, a
	}
	object := main.object.Clone()
	for _, field := range c.except {
		if content := get(other.object, field, c.dots); content != "" {
			put(&object, field, content, c.dots)
		} else {
			remove(&object, field, c.dots)
		}
	}
	item := main.item
	item.JSON = object.JSON()
	return item
}

// both lists what is the same and what differs.
func (c comparison) both(a, b candidate) workflow.Item {
	var keys, same, different, skipped jsonobject.Object
	for _, p := range c.pairs {
		keys.Set(p.a, get(a.object, p.a, c.dots))
		if p.b != p.a {
			keys.Set(p.b, get(b.object, p.b, c.dots))
		}
	}
	for _, key := range c.keys(a, b) {
		if c.comparable(c.without(a, key)) == c.comparable(c.without(b, key)) {
			same.Set(key, a.object.Get(key))
		} else {
			different.Set(key, c.versions(a.object.Get(key), b.object.Get(key)))
		}
	}
	for _, field := range c.skip {
		left, right := get(a.object, field, c.dots), get(b.object, field, c.dots)
		if left != "" || right != "" {
			skipped.Set(field, c.versions(left, right))
		}
	}
	var object jsonobject.Object
	object.Set("keys", keys.String())
	object.Set("same", same.String())
	object.Set("different", different.String())
	if skipped.Len() > 0 {
		object.Set("skipped", skipped.String())
	}
	paired := append(append(workflow.PairedItems{}, a.item.PairedItem...), b.item.PairedItem...)
	return workflow.Item{JSON: object.JSON(), PairedItem: paired}
}

// versions are the values of a field in both inputs, null for none.
func (c comparison) versions(left, right string) string {
	var object jsonobject.Object
	for n, raw := range []string{left, right} {
		if raw == "" {
			raw = "null"
		}
		object.Set(c.names[n], raw)
	}
	return object.String()
}
