package http

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
)

// parameters reads a node's parameters for one item. The first error sticks,
// so that a row of reads is checked once.
type parameters struct {
	ctx  context.Context
	call *node.Call
	item int
	err  error
}

// value returns a parameter with its expressions evaluated; it does not exist
// when it is absent, undefined or null.
func (p *parameters) value(path string) gjson.Result {
	if p.err != nil {
		return gjson.Result{}
	}
	raw := gjson.GetBytes(p.call.Node.Parameters, path)
	if strings.Contains(raw.Raw, `"=`) {
		value, err := p.call.Param(p.ctx, p.item, path)
		if err != nil {
			p.err = err
			return gjson.Result{}
		}
		raw = gjson.ParseBytes(value)
	}
	if raw.Type == gjson.Null {
		return gjson.Result{}
	}
	return raw
}

func (p *parameters) text(path, fallback string) string {
	if v := p.value(path); v.Exists() {
		return v.String()
	}
	return fallback
}

func (p *parameters) flag(path string, fallback bool) bool {
	v := p.value(path)
	switch {
	case !v.Exists() || v.Type == gjson.String && v.Str == "":
		return fallback
	case v.Type == gjson.String:
		return v.Str != "false"
	}
	return v.Bool()
}

func (p *parameters) number(path string, fallback float64) float64 {
	v := p.value(path)
	switch v.Type {
	case gjson.Number:
		return v.Num
	case gjson.String:
		if f, err := strconv.ParseFloat(strings.TrimSpace(v.Str), 64); err == nil {
			return f
		}
		if v.Str != "" && p.err == nil {
			p.err = operationError(fmt.Sprintf("parameter %s: %q is no number", path, v.Str))
		}
	}
	return fallback
}

// pairs reads a list of {name, value} as an object: of two equal names the last
// counts, nameless entries are left out.
func (p *parameters) pairs(path string) jsonobject.Object {
	var o jsonobject.Object
	p.value(path).ForEach(func(_, entry gjson.Result) bool {
		if name := entry.Get("name").String(); name != "" {
			o.Set(name, valueOf(entry))
		}
		return true
	})
	return o
}

func valueOf(entry gjson.Result) string {
	if v := entry.Get("value"); v.Exists() {
		return v.Raw
	}
	return `""`
}

// object reads a parameter that holds a JSON object, as such or as text. label
// is the field's name for people.
func (p *parameters) object(path, label string) jsonobject.Object {
	raw := p.json(path, label)
	if p.err == nil && raw != "" && !strings.HasPrefix(raw, "{") {
		p.err = operationError(fmt.Sprintf("The value in the %q field is not a JSON object", label))
	}
	return jsonobject.Parse(raw)
}

// json reads a parameter that holds JSON, as such or as text.
func (p *parameters) json(path, label string) string {
	v := p.value(path)
	raw := v.Raw
	if v.Type == gjson.String {
		raw = v.Str
	}
	raw = strings.TrimSpace(raw)
	if p.err == nil && v.Exists() && !gjson.Valid(raw) {
		p.err = operationError(fmt.Sprintf("The value in the %q field is not valid JSON", label))
	}
	return raw
}
