package cluster

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Object is a JSON object.
type Object = map[string]any

// Node is a node of a document.
func Node(name, kind string, version float64, parameters Object) Object {
	return Object{"id": name, "name": name, "type": kind, "typeVersion": version, "position": []int{0, 0}, "parameters": parameters}
}

// Document is a workflow. Its links are "A -> B" or "Tool ~ai_tool~> Agent".
func Document(id string, settings Object, nodes []Object, links ...string) []byte {
	all := Object{"executionOrder": "v1", "onWorkerLost": "repeat"}
	for name, value := range settings {
		all[name] = value
	}
	connections := map[string]map[string][][]Object{}
	for _, link := range links {
		from, to, _ := strings.Cut(link, "> ")
		space := strings.LastIndexByte(from, ' ')
		from, kind := from[:space], strings.Trim(from[space+1:], "~-")
		if kind == "" {
			kind = "main"
		}
		if connections[from] == nil {
			connections[from] = map[string][][]Object{kind: {{}}}
		}
		connections[from][kind][0] = append(connections[from][kind][0], Object{"node": to, "type": kind, "index": 0})
	}
	data, err := json.Marshal(Object{"id": id, "name": "The " + id, "nodes": nodes, "connections": connections, "settings": all})
	if err != nil {
		panic(err) // maps and slices of plain values
	}
	return data
}

// Trigger is the node every document begins with, "Start".
func Trigger() Object { return Node("Start", "n8n-nodes-base.manualTrigger", 1, Object{}) }

func effect(ledger, name string) Object {
	return Object{
		"method": "POST", "url": fmt.Sprintf("%s/?tool=%s", ledger, name),
		"sendHeaders": true, "headerParameters": Object{"parameters": []Object{{"name": "X-Execution", "value": "={{ $execution.id }}"}}},
		"options": Object{},
	}
}

// Step is a node of the main flow whose effect the ledger at a URL counts.
func Step(ledger, name string) Object {
	return Node(name, "n8n-nodes-base.httpRequest", 4.2, effect(ledger, name))
}

// Step is a node of the main flow whose effect the ledger counts.
func (l *Ledger) Step(name string) Object { return Step(l.URL, name) }

// Tool is a tool of an Agent whose effect the ledger at a URL counts.
func Tool(ledger, name string) Object {
	parameters := effect(ledger, name)
	parameters["toolDescription"] = "Does " + name
	parameters["sendBody"] = true
	parameters["bodyParameters"] = Object{"parameters": []Object{{"name": "text", "value": "={{ $fromAI('text', 'what to do', 'string') }}"}}}
	return Node(name, "n8n-nodes-base.httpRequestTool", 4.2, parameters)
}

// Agent are an Agent and its model, which plays a scenario of the script.
func Agent(scenario string) []Object {
	model := Node("Model", "@n8n/n8n-nodes-langchain.lmChatOpenAi", 1.3, Object{
		"model": Object{"__rl": true, "mode": "id", "value": scenario}, "responsesApiEnabled": false, "options": Object{},
	})
	model["credentials"] = Object{"openAiApi": Object{"id": "mock-llm", "name": "Mock LLM"}}
	return []Object{
		Node("AI Agent", "@n8n/n8n-nodes-langchain.agent", 3.1, Object{"promptType": "define", "text": "use your tools", "options": Object{}}),
		model,
	}
}

// Tool is a tool of an Agent whose effect the ledger counts.
func (l *Ledger) Tool(name string) Object { return Tool(l.URL, name) }

// AgentDocument is an Agent with tools that call the ledger.
func (l *Ledger) AgentDocument(scenario string, tools []string) []byte {
	return AgentDocument(l.URL, scenario, tools)
}

// AgentDocument is an Agent with tools that call the ledger at a URL. Its model asks
// for all of them at once.
func AgentDocument(ledger, scenario string, tools []string) []byte {
	nodes := append(Agent(scenario), Trigger())
	links := []string{"Start -> AI Agent", "Model ~ai_languageModel~> AI Agent"}
	for _, name := range tools {
		nodes = append(nodes, Tool(ledger, name))
		links = append(links, name+" ~ai_tool~> AI Agent")
	}
	return Document(scenario, nil, nodes, links...)
}

// Chain is a document of steps one after the other.
func (l *Ledger) Chain(id string, steps ...string) []byte {
	nodes, links, last := []Object{Trigger()}, []string{}, "Start"
	for _, name := range steps {
		nodes = append(nodes, l.Step(name))
		links = append(links, last+" -> "+name)
		last = name
	}
	return Document(id, nil, nodes, links...)
}

// Scenario is a script entry of a model that calls all tools at once and then
// tells what they returned.
func Scenario(tools []string) Object {
	calls := make([]Object, len(tools))
	for i, name := range tools {
		calls[i] = Object{"name": name, "args": Object{"text": strings.ToLower(name)}}
	}
	return Object{"turns": []Object{{"tool_calls": calls}, {"content": "All done: {{results}}."}}}
}

// AnswerOf is the answer of an execution whose tools all succeeded.
func AnswerOf(tools []string) string {
	parts := make([]string, len(tools))
	for i, name := range tools {
		parts[i] = fmt.Sprintf(`%s returned [{"done":"%s"}]`, name, name)
	}
	return "All done: " + strings.Join(parts, "; ") + "."
}
