package expression

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/reprise-engine/reprise/pkg/javascript"
)

// thrown is an error on its way into a script: its text is JSON.
type thrown struct{ error }

func (t thrown) Error() string {
	raw, _ := json.Marshal(t.error)
	return string(raw)
}

// host answers what globals.js asks for.
func (s *Scope) host() javascript.Host {
	return func(op, arg string) (string, bool, error) {
		raw, err := s.answer(op, arg)
		if e := (*Error)(nil); errors.As(err, &e) {
			return "", false, thrown{e}
		}
		return string(raw), raw != nil, err
	}
}

// question is the argument of most host calls.
type question struct {
	Node   string   `json:"node"`
	Which  string   `json:"which"`
	Branch int      `json:"branch"`
	Run    int      `json:"run"`
	Item   int      `json:"item"`
	End    int      `json:"end"`
	Keys   []string `json:"keys"`
}

// answer returns JSON, or nil for undefined.
func (s *Scope) answer(op, arg string) (json.RawMessage, error) {
	if op == "fromAI" {
		v, err := s.fromAI(FromAI{Key: arg})
		return v.JSON, err
	}
	var q question
	if err := json.Unmarshal([]byte(arg), &q); err != nil {
		return nil, fmt.Errorf("host call %s: %w", op, err)
	}
	switch op {
	case "item":
		if item, ok := s.inputItem(q.Item); ok {
			return marshalItem(item), nil
		}
		return nil, nil
	case "items":
		input := s.input()
		begin := min(max(q.Item, 0), len(input))
		return marshalItems(input[begin:max(begin, min(q.End, len(input)))]), nil
	case "keys":
		if item, ok := s.inputItem(q.Item); ok {
			return selectKeys(item.JSON, q.Keys), nil
		}
		return nil, nil
	case "keysOf":
		input := s.input()
		begin := min(max(q.Item, 0), len(input))
		out := []byte{'['}
		for i, item := range input[begin:max(begin, min(q.End, len(input)))] {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, selectKeys(item.JSON, q.Keys)...)
		}
		return append(out, ']'), nil
	case "input":
		return marshalItems(s.input()), nil
	case "exists":
		return nil, s.exists(q.Node)
	case "paired":
		item, err := s.paired(q.Node, q.Item)
		if err != nil {
			return nil, err
		}
		return marshalItem(item), nil
	case "legacy":
		item, err := s.legacy(q.Node, q.Item)
		if err != nil {
			return nil, err
		}
		return marshalItem(item), nil
	case "node":
		items, err := s.nodeItems(q.Node, q.Branch, q.Run)
		if err != nil {
			return nil, err
		}
		if q.Which == "all" {
			return marshalItems(items), nil
		}
		if item, ok := pick(items, q.Which); ok {
			return marshalItem(item), nil
		}
		return nil, nil
	case "info":
		info := struct {
			Runs       int             `json:"runs"`
			Parameters json.RawMessage `json:"parameters"`
		}{s.runs(q.Node), json.RawMessage("{}")}
		if n := s.Nodes[q.Node]; n != nil && len(n.Parameters) > 0 {
			info.Parameters = n.Parameters
		}
		return json.Marshal(info)
	case "parameters":
		if s.Node != nil {
			return s.Node.Parameters, nil
		}
		return nil, nil
	case "vars":
		return json.Marshal(s.Vars)
	case "env":
		if s.Env == nil {
			return nil, nil
		}
		return json.Marshal(s.Env)
	}
	return nil, nil
}

// selectKeys is an object with some of its keys.
func selectKeys(raw json.RawMessage, keys []string) json.RawMessage {
	out := []byte{'{'}
	members(raw, func(key, value []byte) bool {
		name := decodeString(key)
		for _, k := range keys {
			if k == name {
				if len(out) > 1 {
					out = append(out, ',')
				}
				out = append(append(append(out, key...), ':'), value...)
				break
			}
		}
		return true
	})
	return append(out, '}')
}
