package engine_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// sketch builds a workflow from a short text, one statement a line:
//
//	Name: type key=value …  a node. Types: trigger, node, agent, tool, gateHitlTool, model.
//	                        Keys: at=x,y retry (maxTries=, wait=) onError= continueOnFail once
//	                        always disabled timeout=ms outputs=n required=0,1
//	A -> B                  output 0 of A to input 0 of B; A/1 -> B/2 for others
//	T ~> Agent              T is a tool of Agent
//	pin Name {"json":…} …   a list of items
//	set key=value           a setting of the workflow
//	missing Name            leaves the node out, so that connections to it lead nowhere
func sketch(text string) (*workflow.Workflow, error) {
	b := newBuilder()
	for _, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if err := b.statement(line); err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
	}
	return b.build()
}

type builder struct {
	nodes       []map[string]any
	connections map[string]map[string][][]workflow.Target
	settings    map[string]any
	pinData     map[string]json.RawMessage
}

func newBuilder() *builder {
	return &builder{
		connections: map[string]map[string][][]workflow.Target{},
		settings:    map[string]any{"executionOrder": "v1"},
		pinData:     map[string]json.RawMessage{},
	}
}

func (b *builder) build() (*workflow.Workflow, error) {
	doc, err := json.Marshal(map[string]any{
		"name": "sketch", "nodes": b.nodes, "connections": b.connections, "settings": b.settings, "pinData": b.pinData,
	})
	if err != nil {
		return nil, err
	}
	return workflow.Parse(doc)
}

func (b *builder) statement(line string) error {
	if rest, ok := strings.CutPrefix(line, "pin "); ok {
		name, items, _ := strings.Cut(rest, " ")
		b.pinData[spaced(name)] = json.RawMessage(items)
		return nil
	}
	if rest, ok := strings.CutPrefix(line, "set "); ok {
		for _, pair := range strings.Fields(rest) {
			key, value, _ := strings.Cut(pair, "=")
			b.settings[key] = value
			if n, err := strconv.ParseFloat(value, 64); err == nil {
				b.settings[key] = n
			}
		}
		return nil
	}
	if from, to, ok := strings.Cut(line, " -> "); ok {
		return b.connect(from, to, workflow.Main)
	}
	if from, to, ok := strings.Cut(line, " ~> "); ok {
		return b.connect(from, to, workflow.Tool)
	}
	if name, rest, ok := strings.Cut(line, ":"); ok {
		return b.node(name, strings.Fields(rest))
	}
	return fmt.Errorf("not understood")
}

func (b *builder) node(name string, words []string) error {
	if len(words) == 0 {
		return fmt.Errorf("a node needs a type")
	}
	n := map[string]any{
		"name": name, "type": words[0], "typeVersion": 1,
		"position": []float64{0, float64(100 * len(b.nodes))},
	}
	params := map[string]any{}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		number, numErr := strconv.Atoi(value)
		switch key {
		case "at":
			var x, y float64
			if _, err := fmt.Sscanf(value, "%f,%f", &x, &y); err != nil {
				return err
			}
			n["position"] = []float64{x, y}
		case "retry":
			n["retryOnFail"] = true
		case "maxTries", "timeout":
			n[key] = number
		case "wait":
			n["waitBetweenTries"] = number
		case "onError":
			n["onError"] = value
		case "continueOnFail", "disabled":
			n[key] = true
		case "once":
			n["executeOnce"] = true
		case "always":
			n["alwaysOutputData"] = true
		case "outputs", "required":
			params[key] = value
		default:
			return fmt.Errorf("unknown key %q", key)
		}
		if (key == "maxTries" || key == "timeout" || key == "wait") && numErr != nil {
			return numErr
		}
	}
	n["parameters"] = params
	b.nodes = append(b.nodes, n)
	return nil
}

func (b *builder) connect(from, to, connType string) error {
	source, output, err := port(from)
	if err != nil {
		return err
	}
	dest, input, err := port(to)
	if err != nil {
		return err
	}
	types := b.connections[source]
	if types == nil {
		types = map[string][][]workflow.Target{}
		b.connections[source] = types
	}
	for len(types[connType]) <= output {
		types[connType] = append(types[connType], nil)
	}
	types[connType][output] = append(types[connType][output], workflow.Target{Node: dest, Type: connType, Index: input})
	return nil
}

func port(text string) (string, int, error) {
	name, index, found := strings.Cut(strings.TrimSpace(text), "/")
	if !found {
		return name, 0, nil
	}
	n, err := strconv.Atoi(index)
	return name, n, err
}

// spaced reads names of commands, where a space is written as _.
func spaced(name string) string { return strings.ReplaceAll(name, "_", " ") }

// catalog knows the types of sketches.
type catalog struct{}

func (catalog) Lookup(name string, _ float64) (*workflow.Spec, bool) {
	spec := &workflow.Spec{Type: name, Versions: []float64{1}}
	switch name {
	case "trigger":
		spec.Trigger = true
	case "tool", "gateHitlTool":
		spec.ToolNode = true
	case "model":
		spec.SubNode = true
	case "node", "agent":
		spec.Outputs = func(n *workflow.Node) int {
			if count, err := strconv.Atoi(parameter(n, "outputs")); err == nil {
				return count
			}
			return 1
		}
		spec.RequiredInputs = func(n *workflow.Node) []int {
			var list []int
			for _, word := range strings.Split(parameter(n, "required"), ",") {
				if i, err := strconv.Atoi(word); err == nil {
					list = append(list, i)
				}
			}
			return list
		}
	default:
		return nil, false
	}
	return spec, true
}

func parameter(n *workflow.Node, key string) string {
	var params map[string]string
	if json.Unmarshal(n.Parameters, &params) != nil {
		return ""
	}
	return params[key]
}
