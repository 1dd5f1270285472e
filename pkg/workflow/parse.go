package workflow

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
)

// wrappers are keys under which other programs put the document: the template
// library, API answers and lists, exported executions.
var wrappers = []string{"workflow", "data", "workflowData"}

// Parse reads a workflow document. It forgives what files in the wild have and
// n8n runs anyway (a byte order mark, wrappers, missing or misspelt scalars,
// null slots, links to nowhere); Validate reports what of it matters.
//
// The error is a *SyntaxError when data is no JSON, else it says what a
// workflow has and this document has not.
func Parse(data []byte) (*Workflow, error) {
	data, err := checkJSON(data)
	if err != nil {
		return nil, err
	}
	w := &Workflow{
		// The caller may reuse its buffer; a Workflow is immutable.
		Raw:    bytes.Clone(data),
		Hash:   hash(data),
		byName: map[string]*Node{},
		out:    map[string]map[string][][]Target{},
		in:     map[string]map[string][][]Origin{},
	}
	doc, err := w.unwrap(gjson.ParseBytes(data), len(wrappers)+1)
	if err != nil {
		return nil, err
	}
	if err := w.decodeNodes(doc["nodes"]); err != nil {
		return nil, err
	}
	w.decodeSettings(doc["settings"])
	w.decodeConnections(doc["connections"])
	w.decodePinData(doc["pinData"])
	return w, nil
}

// hash is the SHA-256 of the document in a form that survives transport:
// without space between tokens, and with the characters escaped that
// encoding/json escapes when the document is embedded in a message.
func hash(data []byte) string {
	var compact, escaped bytes.Buffer
	compact.Grow(len(data))
	if err := json.Compact(&compact, data); err != nil {
		compact.Reset()
		compact.Write(data) // cannot happen: data was checked
	}
	escaped.Grow(compact.Len())
	json.HTMLEscape(&escaped, compact.Bytes())
	sum := sha256.Sum256(escaped.Bytes())
	return hex.EncodeToString(sum[:])
}

// unwrap finds the members of the document inside what was given and takes the
// id and name, the innermost ones that are there.
func (w *Workflow) unwrap(v gjson.Result, depth int) (map[string]gjson.Result, error) {
	switch {
	case depth == 0:
		return nil, errors.New("not a workflow: it is wrapped too deeply")
	case v.IsArray():
		list := v.Array()
		if len(list) != 1 {
			return nil, fmt.Errorf("not a workflow but a list of %d documents: give one of them at a time", len(list))
		}
		return w.unwrap(list[0], depth-1)
	case !v.IsObject():
		return nil, fmt.Errorf("not a workflow: it is %s, want an object with a list of nodes", describe(v))
	}
	doc := members(v)
	_, bare := doc["nodes"]
	var listed error
	for _, key := range wrappers {
		// In a template's wrapper "nodes" lists the node types it uses and the
		// document lies deeper, so this one wrapper is looked into first.
		if bare && key != "workflow" {
			continue
		}
		inner := unquoted(doc[key])
		if !inner.IsObject() && !inner.IsArray() {
			continue
		}
		found, err := w.unwrap(inner, depth-1)
		if err == nil {
			w.identify(doc)
			return found, nil
		}
		if inner.IsArray() {
			listed = err
		}
	}
	switch {
	case bare:
		w.identify(doc)
		return doc, nil
	case listed != nil:
		return nil, listed
	}
	return nil, fmt.Errorf("not a workflow: it has no %q list (it has %s)", "nodes", keyList(v))
}

// identify takes the id and name unless a document further inside had them.
func (w *Workflow) identify(doc map[string]gjson.Result) {
	if w.ID == "" {
		w.ID = text(doc["id"])
	}
	if w.Name == "" {
		w.Name = text(doc["name"])
	}
	w.Active = w.Active || doc["active"].Type == gjson.True
}

// members are the members of an object; of a repeated key the last counts.
func members(v gjson.Result) map[string]gjson.Result {
	all := map[string]gjson.Result{}
	v.ForEach(func(key, value gjson.Result) bool {
		all[key.Str] = value
		return true
	})
	return all
}

// keyList names the first keys of an object for an error message.
func keyList(v gjson.Result) string {
	const most = 6
	var keys []string
	v.ForEach(func(key, _ gjson.Result) bool {
		keys = append(keys, fmt.Sprintf("%q", clip(key.Str, 40)))
		return len(keys) <= most
	})
	switch {
	case len(keys) == 0:
		return "no keys at all"
	case len(keys) > most:
		keys = append(keys[:most], "…")
	}
	return "the keys " + strings.Join(keys, ", ")
}
