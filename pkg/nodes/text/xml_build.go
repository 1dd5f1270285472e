package text

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
)

// builder writes JSON as XML as xml2js' Builder does.
type builder struct {
	b                     strings.Builder
	attributeKey, textKey string
	cdata                 bool
}

// defaultRoot is the name of the root element when there is none in the item.
const defaultRoot = "root"

func buildXML(object jsonobject.Object, o options) (string, error) {
	w := &builder{
		attributeKey: o.text("attrkey", "$"), textKey: o.text("charkey", "_"),
		cdata: o.flag("cdata", false),
	}
	root, value := o.text("rootName", defaultRoot), gjson.Parse(object.String())
	// An item with one field has its root already, unless another is asked for.
	if members := value.Map(); len(members) == 1 && root == defaultRoot {
		for name, member := range members {
			if !member.IsArray() {
				root, value = name, member
			}
		}
	}
	if !o.flag("headless", false) {
		w.b.WriteString(`<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n")
	}
	if err := w.element(root, value, 0); err != nil {
		return "", err
	}
	return strings.TrimSuffix(w.b.String(), "\n"), nil
}

// legalName is XML's form of names.
var legalName = regexp.MustCompile(`^[:A-Z_a-z\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{2FF}\x{370}-\x{37D}\x{37F}-\x{1FFF}\x{200C}\x{200D}\x{2070}-\x{218F}\x{2C00}-\x{2FEF}\x{3001}-\x{D7FF}\x{F900}-\x{FDCF}\x{FDF0}-\x{FFFD}\x{10000}-\x{EFFFF}][:A-Z_a-z0-9.\-\x{B7}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{37D}\x{37F}-\x{1FFF}\x{200C}\x{200D}\x{203F}\x{2040}\x{2070}-\x{218F}\x{2C00}-\x{2FEF}\x{3001}-\x{D7FF}\x{F900}-\x{FDCF}\x{FDF0}-\x{FFFD}\x{10000}-\x{EFFFF}]*$`)

func (w *builder) element(name string, value gjson.Result, depth int) error {
	if !legalName.MatchString(name) {
		return fmt.Errorf("%q cannot be the name of an XML element", name)
	}
	if depth > maxDepth {
		return fmt.Errorf("the elements are nested more than %d deep", maxDepth)
	}
	indent := strings.Repeat("  ", depth)
	w.b.WriteString(indent + "<" + name)
	var text string
	var children []jsonobject.Member
	hasText := false
	switch {
	case value.IsObject():
		var err error
		value.ForEach(func(key, member gjson.Result) bool {
			switch {
			case key.Str == w.attributeKey && member.IsObject():
				err = w.attributes(member)
			case key.Str == w.textKey:
				text, hasText = text+asText(member), true
			case member.IsArray():
				for _, entry := range member.Array() {
					children = append(children, jsonobject.Member{Key: key.Str, Value: entry.Raw})
				}
			default:
				children = append(children, jsonobject.Member{Key: key.Str, Value: member.Raw})
			}
			return err == nil
		})
		if err != nil {
			return err
		}
	case value.IsArray():
		// A list within a list: the members of its objects.
		for _, entry := range value.Array() {
			entry.ForEach(func(key, member gjson.Result) bool {
				if entry.IsObject() {
					children = append(children, jsonobject.Member{Key: key.Str, Value: member.Raw})
				}
				return true
			})
		}
	case value.Type != gjson.Null:
		text, hasText = value.String(), true
	}
	if len(children) == 0 && text == "" {
		w.b.WriteString("/>\n")
		return nil
	}
	w.b.WriteByte('>')
	if hasText {
		escaped, err := w.text(text)
		if err != nil {
			return fmt.Errorf("element %s: %w", name, err)
		}
		w.b.WriteString(escaped)
	}
	if len(children) > 0 {
		w.b.WriteByte('\n')
		for _, child := range children {
			if err := w.element(child.Key, gjson.Parse(child.Value), depth+1); err != nil {
				return err
			}
		}
		w.b.WriteString(indent)
	}
	w.b.WriteString("</" + name + ">\n")
	return nil
}

var attributeEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", `"`, "&quot;", "\t", "&#x9;", "\n", "&#xA;", "\r", "&#xD;")

func (w *builder) attributes(members gjson.Result) error {
	var err error
	members.ForEach(func(key, value gjson.Result) bool {
		if !legalName.MatchString(key.Str) {
			err = fmt.Errorf("%q cannot be the name of an XML attribute", key.Str)
			return false
		}
		var text string
		if text, err = legal(asText(value)); err != nil {
			err = fmt.Errorf("attribute %s: %w", key.Str, err)
			return false
		}
		w.b.WriteString(" " + key.Str + `="` + attributeEscapes.Replace(text) + `"`)
		return true
	})
	return err
}

var textEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#xD;")

// text escapes a text, or wraps it where it would have to be.
func (w *builder) text(text string) (string, error) {
	text, err := legal(text)
	if err != nil {
		return "", err
	}
	if w.cdata && strings.ContainsAny(text, "&<>") {
		return "<![CDATA[" + strings.ReplaceAll(text, "]]>", "]]]]><![CDATA[>") + "]]>", nil
	}
	return textEscapes.Replace(text), nil
}

// legal refuses the characters that XML 1.0 has no way to write.
func legal(text string) (string, error) {
	for _, r := range text {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == '\ufffe' || r == '\uffff' {
			return "", fmt.Errorf("the character U+%04X cannot be written in XML", r)
		}
	}
	return text, nil
}
