package crashtest

import (
	"encoding/json"
	"fmt"
	"strings"
)

type object = map[string]any

// node is one of a document.
func node(name, kind string, version float64, parameters object) object {
	return object{"id": name, "name": name, "type": kind, "typeVersion": version, "position": []int{0, 0}, "parameters": parameters}
}

// document is a workflow. Its links are "A -> B" or "Tool ~ai_tool~> Agent".
func document(id string, settings object, nodes []object, links ...string) []byte {
	all := object{"executionOrder": "v1", "onWorkerLost": "repeat"}
	for name, value := range settings {
		all[name] = value
	}
	connections := map[string]map[string][][]object{}
	for _, link := range links {
		from, to, _ := strings.Cut(link, "> ")
		space := strings.LastIndexByte(from, ' ')
		from, kind := from[:space], strings.Trim(from[space+1:], "~-")
		if kind == "" {
			kind = "main"
		}
		if connections[from] == nil {
			connections[from] = map[string][][]object{kind: {{}}}
		}
		connections[from][kind][0] = append(connections[from][kind][0], object{"node": to, "type": kind, "index": 0})
	}
	data, err := json.Marshal(object{"id": id, "name": "The " + id, "nodes": nodes, "connections": connections, "settings": all})
	if err != nil {
		panic(err) // maps and slices of plain values
	}
	return data
}

func trigger() object { return node("Start", "n8n-nodes-base.manualTrigger", 1, object{}) }

// effectOf are the parameters of a request that the ledger counts.
func (l *ledger) effectOf(name string) object {
	return object{
		"method": "POST", "url": fmt.Sprintf("%s/?tool=%s", l.URL, name),
		"sendHeaders": true, "headerParameters": object{"parameters": []object{{"name": "X-Execution", "value": "={{ $execution.id }}"}}},
		"options": object{},
	}
}

// step is a node of the main flow whose effect the ledger counts. It is run by
// workers.
func (l *ledger) step(name string) object {
	return node(name, "n8n-nodes-base.httpRequest", 4.2, l.effectOf(name))
}

// tool is a tool of an Agent whose effect the ledger counts.
func (l *ledger) tool(name string) object {
	parameters := l.effectOf(name)
	parameters["toolDescription"] = "Does " + name
	parameters["sendBody"] = true
	parameters["bodyParameters"] = object{"parameters": []object{{"name": "text", "value": "={{ $fromAI('text', 'what to do', 'string') }}"}}}
	return node(name, "n8n-nodes-base.httpRequestTool", 4.2, parameters)
}

// agent are an Agent and its model, which plays a scenario of the script.
func agent(scenario string) []object {
	model := node("Model", "@n8n/n8n-nodes-langchain.lmChatOpenAi", 1.3, object{
		"model": object{"__rl": true, "mode": "id", "value": scenario}, "responsesApiEnabled": false, "options": object{},
	})
	model["credentials"] = object{"openAiApi": object{"id": "mock-llm", "name": "Mock LLM"}}
	return []object{
		node("AI Agent", "@n8n/n8n-nodes-langchain.agent", 3.1, object{"promptType": "define", "text": "use your tools", "options": object{}}),
		model,
	}
}

// agentDocument is an Agent with tools that call the ledger.
func (l *ledger) agentDocument(tools []string) []byte {
	nodes := append(agent("crash"), trigger())
	links := []string{"Start -> AI Agent", "Model ~ai_languageModel~> AI Agent"}
	for _, name := range tools {
		nodes = append(nodes, l.tool(name))
		links = append(links, name+" ~ai_tool~> AI Agent")
	}
	return document("crash", nil, nodes, links...)
}
