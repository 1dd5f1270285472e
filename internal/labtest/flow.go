package labtest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// NewNode is a node with its parameters as JSON, which may be "" for none.
func NewNode(name, typ string, version float64, parameters string) Node {
	n := newNode(name, typ, version, nil)
	if parameters == "" {
		parameters = "{}"
	}
	n["parameters"] = json.RawMessage(parameters)
	return n
}

// ModelNode is the site's model under a name, to be attached to Agents.
func (s *Site) ModelNode(name, model string) Node {
	return newNode(name, "@n8n/n8n-nodes-langchain.lmChatOpenAi", 1.3, map[string]any{
		"model":   map[string]any{"__rl": true, "mode": "id", "value": model},
		"options": map[string]any{"maxRetries": 0}, "responsesApiEnabled": false,
	}).With("credentials", map[string]any{"openAiApi": map[string]any{"id": s.Credential, "name": "Model"}})
}

// Agent is an Agent whose prompt is an expression or a text.
func Agent(name, prompt string) Node {
	return newNode(name, "@n8n/n8n-nodes-langchain.agent", 3.1, map[string]any{
		"promptType": "define", "text": prompt, "options": map[string]any{"maxIterations": 10},
	})
}

// AgentTool is an Agent that is a tool of another, which calls it with the argument
// "task".
func AgentTool(name string) Node {
	return newNode(name, "@n8n/n8n-nodes-langchain.agentTool", 3, map[string]any{
		"toolDescription": "Does a task", "options": map[string]any{},
		"text": "={{ $fromAI('task', 'what to do', 'string') }}",
	})
}

// Gate asks a person before a tool behind it is run. timeout is "" for none, a
// duration such as "0.3s", or an expression.
func Gate(name, timeout string) Node {
	return newNode(name, "reprise.approvalHitlTool", 1, map[string]any{"timeout": timeout})
}

// MailGate is Gate by a mail to the site's mailbox.
func (s *Site) MailGate(name string) Node {
	return newNode(name, "n8n-nodes-base.emailSendHitlTool", 2.1, map[string]any{
		"fromEmail": "reprise@lab.test", "toEmail": s.Address, "subject": "Approval needed",
		"approvalOptions": map[string]any{"values": map[string]any{"approvalType": "double"}}, "options": map[string]any{},
	}).With("credentials", map[string]any{"smtp": map[string]any{"id": SMTPCredential, "name": "Mail"}})
}

// Post is a node of the main flow that posts a text, which may be an expression, to
// a URL.
func Post(name, url, text string) Node {
	return newNode(name, "n8n-nodes-base.httpRequest", 4.2, map[string]any{
		"method": "POST", "url": url, "sendBody": true, "options": map[string]any{},
		"bodyParameters": map[string]any{"parameters": []any{map[string]any{"name": "text", "value": text}}},
	})
}

// Wait is a wait of seconds.
func Wait(name string, seconds float64) Node {
	return newNode(name, "n8n-nodes-base.wait", 1.1, map[string]any{"resume": "timeInterval", "amount": seconds, "unit": "seconds"})
}

// WorkflowTool is a tool that runs a stored workflow with the argument "number".
func WorkflowTool(name, workflow string) Node {
	return newNode(name, "@n8n/n8n-nodes-langchain.toolWorkflow", 2.2, map[string]any{
		"description": "Runs " + workflow, "workflowId": map[string]any{"__rl": true, "mode": "id", "value": workflow},
		"workflowInputs": map[string]any{
			"mappingMode": "defineBelow", "value": map[string]any{"number": "={{ $fromAI('number', 'a number', 'number') }}"},
			"schema": []any{map[string]any{"id": "number", "displayName": "number", "type": "number", "display": true}},
		},
	})
}

// ExecuteWorkflow runs a stored workflow, with all items (mode "once") or with each
// of them ("each").
func ExecuteWorkflow(name, workflow, mode string) Node {
	return newNode(name, "n8n-nodes-base.executeWorkflow", 1.2, map[string]any{
		"workflowId":     map[string]any{"__rl": true, "mode": "id", "value": workflow},
		"workflowInputs": map[string]any{"mappingMode": "defineBelow", "value": map[string]any{}}, "options": map[string]any{}, "mode": mode,
	})
}

// Called is the start of a workflow that others run.
func Called() Node {
	return newNode("Called", "n8n-nodes-base.executeWorkflowTrigger", 1.1, map[string]any{"inputSource": "passthrough"})
}

// Flow is a document whose nodes are connected as told: "A -> B", "A/1 -> B" from the
// output 1, or "T ~ai_tool~> B". A node name has no "/" and no "> ".
func Flow(id string, settings map[string]any, nodes []Node, connections ...string) []byte {
	all := map[string]any{"executionOrder": "v1"}
	for name, value := range settings {
		all[name] = value
	}
	places := map[string]map[string][][]map[string]any{}
	for _, c := range connections {
		from, to, found := strings.Cut(c, "> ")
		space := strings.LastIndexByte(from, ' ')
		if !found || space < 0 {
			panic(fmt.Sprintf("labtest: the connection %q is not of the form %q", c, "A -> B"))
		}
		kind := strings.Trim(from[space+1:], "~-")
		if kind == "" {
			kind = "main"
		}
		name, port, _ := strings.Cut(from[:space], "/")
		output, _ := strconv.Atoi(port)
		if places[name] == nil {
			places[name] = map[string][][]map[string]any{}
		}
		for len(places[name][kind]) <= output {
			places[name][kind] = append(places[name][kind], []map[string]any{})
		}
		places[name][kind][output] = append(places[name][kind][output], map[string]any{"node": to, "type": kind, "index": 0})
	}
	data, err := json.Marshal(map[string]any{"id": id, "name": "The " + id, "nodes": nodes, "connections": places, "settings": all})
	if err != nil {
		panic(err) // only values that JSON knows
	}
	return data
}
