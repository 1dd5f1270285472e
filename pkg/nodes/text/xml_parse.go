package text

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
)

// maxDepth bounds how deep elements are nested; JSON readers have such a bound too.
const maxDepth = 1000

// element is an element that is being read.
type element struct {
	name  string
	value jsonobject.Object
	// lists are the members that hold several values.
	lists map[string][]string
	text  strings.Builder
	cdata bool
}

// reader builds JSON of XML as xml2js does (https://www.npmjs.com/package/xml2js).
type reader struct {
	attributeKey, textKey string

	ignoreAttributes, mergeAttributes, explicitArray, normalize, normalizeTags, trim bool
}

// parseXML gives {root: …}, or without the option explicitRoot what is inside.
func parseXML(text string, o options) (jsonobject.Object, error) {
	r := &reader{
		attributeKey: o.text("attrkey", "$"), textKey: o.text("charkey", "_"),
		ignoreAttributes: o.flag("ignoreAttrs", false), mergeAttributes: o.flag("mergeAttrs", true), explicitArray: o.flag("explicitArray", false),
		normalize: o.flag("normalize", false), normalizeTags: o.flag("normalizeTags", false), trim: o.flag("trim", false),
	}
	var object jsonobject.Object
	name, value, err := r.read(text)
	if err != nil {
		return object, err
	}
	if !o.flag("explicitRoot", true) && strings.HasPrefix(value, "{") {
		return jsonobject.Parse(value), nil
	}
	object.Set(name, value)
	return object, nil
}

func (r *reader) read(text string) (root, value string, err error) {
	text = strings.TrimLeft(text, "\ufeff \t\r\n")
	decoder := xml.NewDecoder(strings.NewReader(text))
	// The text is Unicode already, whatever its declaration says.
	decoder.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil }
	var open []*element
	fail := func(format string, a ...any) (string, string, error) {
		line, column := decoder.InputPos()
		return "", "", fmt.Errorf("line %d, column %d: %s", line, column, fmt.Sprintf(format, a...))
	}
	for {
		before := decoder.InputOffset()
		// Raw tokens keep the prefixes of names; whether tags match is checked here.
		token, err := decoder.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fail("%s", strings.TrimPrefix(err.Error(), "XML syntax error on "))
		}
		switch token := token.(type) {
		case xml.StartElement:
			if len(open) == 0 && root != "" {
				return fail("there is a second root element, <%s>", nameOf(token.Name))
			}
			if len(open) == maxDepth {
				return fail("the elements are nested more than %d deep", maxDepth)
			}
			open = append(open, r.start(token))
		case xml.EndElement:
			last := len(open) - 1
			if last < 0 || open[last].name != r.tag(token.Name) {
				return fail("</%s> closes no element", nameOf(token.Name))
			}
			closed := open[last]
			open = open[:last]
			value := r.finish(closed)
			if last == 0 {
				root = closed.name
				open = nil
				return r.rest(decoder, root, value, fail)
			}
			r.add(open[last-1], closed.name, value)
		case xml.CharData:
			if len(open) == 0 {
				if strings.TrimSpace(string(token)) != "" {
					return fail("there is text outside of the root element")
				}
				continue
			}
			current := open[len(open)-1]
			current.text.Write(token)
			current.cdata = current.cdata || strings.HasPrefix(text[before:], "<![CDATA[")
		}
	}
	if len(open) > 0 {
		return fail("<%s> is not closed", open[len(open)-1].name)
	}
	return fail("there is no element")
}

// rest makes sure that nothing but comments follows the root element.
func (r *reader) rest(decoder *xml.Decoder, root, value string, fail func(string, ...any) (string, string, error)) (string, string, error) {
	for {
		token, err := decoder.RawToken()
		if errors.Is(err, io.EOF) {
			return root, value, nil
		}
		if err != nil {
			return fail("%s", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			return fail("there is a second root element, <%s>", nameOf(token.Name))
		case xml.EndElement:
			return fail("</%s> closes no element", nameOf(token.Name))
		case xml.CharData:
			if strings.TrimSpace(string(token)) != "" {
				return fail("there is text outside of the root element")
			}
		}
	}
}

func nameOf(name xml.Name) string {
	if name.Space != "" {
		return name.Space + ":" + name.Local
	}
	return name.Local
}

func (r *reader) tag(name xml.Name) string {
	if r.normalizeTags {
		return strings.ToLower(nameOf(name))
	}
	return nameOf(name)
}

func (r *reader) start(token xml.StartElement) *element {
	e := &element{name: r.tag(token.Name), lists: map[string][]string{}}
	if r.ignoreAttributes || len(token.Attr) == 0 {
		return e
	}
	if r.mergeAttributes {
		for _, attribute := range token.Attr {
			r.add(e, nameOf(attribute.Name), jsonobject.Quote(attribute.Value))
		}
		return e
	}
	var attributes jsonobject.Object
	for _, attribute := range token.Attr {
		attributes.Set(nameOf(attribute.Name), jsonobject.Quote(attribute.Value))
	}
	e.value.Set(r.attributeKey, attributes.String())
	return e
}

// add gives an element a member; finish makes a list of several.
func (r *reader) add(e *element, name, value string) {
	values, known := e.lists[name]
	values = append(values, value)
	e.lists[name] = values
	switch {
	case !known && e.value.Has(name): // the key of attributes or text
		values = append([]string{e.value.Get(name)}, values...)
		e.lists[name] = values
	case !known:
		e.value.Set(name, value) // its place in the order
	}
}

// finish is the JSON of an element: a text when there is nothing else.
func (r *reader) finish(e *element) string {
	for name, values := range e.lists {
		if len(values) > 1 || r.explicitArray {
			e.value.Set(name, "["+strings.Join(values, ",")+"]")
		}
	}
	text, object := e.text.String(), e.value.String()
	if strings.TrimSpace(text) == "" && !e.cdata {
		if object == "{}" {
			return jsonobject.Quote(text)
		}
		return object
	}
	if r.normalize {
		text = manySpaces.ReplaceAllString(text, " ")
	}
	if r.trim || r.normalize {
		text = strings.TrimSpace(text)
	}
	if object == "{}" {
		return jsonobject.Quote(text)
	}
	var withText jsonobject.Object
	withText.Set(r.textKey, jsonobject.Quote(text)) // it goes first
	withText.Overlay(e.value, false, nil)
	return withText.String()
}

var manySpaces = regexp.MustCompile(`\s{2,}`)
