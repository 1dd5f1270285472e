package chaos

import (
	"encoding/json"
	"fmt"
	"strings"
)

const (
	modelCredential = "mock-llm"
	// shortWait is how long the executions that wait do so.
	shortWait = 2
	agentName = "AI Agent"
)

// The tools and steps that have effects.
const (
	toolCharge = "Charge" // answers soon; behind an approval in some executions
	toolMail   = "Mail"   // is slow
	toolStock  = "Stock"  // is refused now and then, and tried again
	stepShip   = "Ship"   // of the main flow, after a wait
	stepPack   = "Pack"   // of a sub-workflow
)

var tools = []string{toolCharge, toolMail, toolStock}

// script is what the mock model says. A gated tool takes its arguments one level down.
const script = `{
"order": {"turns": [
	{"tool_calls": [{"name": "Charge", "args": {"text": "the card"}}, {"name": "Mail", "args": {"text": "the customer"}}, {"name": "Stock", "args": {"text": "one"}}]},
	{"content": "Done: {{results}}."}]},
"gated": {"turns": [
	{"tool_calls": [{"name": "Charge", "args": {"toolParameters": {"text": "the card"}}}, {"name": "Mail", "args": {"text": "the customer"}}, {"name": "Stock", "args": {"text": "one"}}]},
	{"content": "Done: {{results}}."}]}}`

// shape is a kind of execution.
type shape struct {
	name  string
	gated bool
	// once says that the mail is not to be sent again when its worker is lost.
	once     bool
	document []byte
	// effects it has, and nodes that run once each.
	effects, nodes []string
}

// answer is what the Agent of an order says when all is well. Each part names the
// order, so that results which were mixed up are noticed. lost are the messages of
// tools that were given up.
func answer(order string, lost map[string]string) string {
	parts := make([]string, len(tools))
	for i, tool := range tools {
		returned := "[" + receipt(tool, order) + "]"
		if message, is := lost[tool]; is {
			returned = fmt.Sprintf(`[{"error":%q}]`, message)
		}
		parts[i] = tool + " returned " + returned
	}
	return "Done: " + strings.Join(parts, "; ") + "."
}

// receipt is what the ledger answers.
func receipt(tool, order string) string { return fmt.Sprintf(`{"done":%q,"order":%q}`, tool, order) }

// workload is what executions do.
type workload struct {
	shapes []*shape
	child  []byte // the sub-workflow
	id     string // its id
}

// mix is the shape of the n-th execution, modulo its length.
var mix = []string{"plain", "wait", "once", "subworkflow", "plain", "approval", "once", "wait", "subworkflow", "approval"}

func (w *workload) shape(n int) *shape {
	for _, s := range w.shapes {
		if s.name == mix[n%len(mix)] {
			return s
		}
	}
	return w.shapes[0]
}

type object = map[string]any

// newWorkload makes workflows whose nodes run in a pool ("" for the default) and whose
// tools call the ledger. run makes their ids its own.
func newWorkload(run, ledger, pool string) *workload {
	w := &workload{id: run + "-child"}
	node := func(name, kind string, version float64, parameters object) object {
		n := object{"id": name, "name": name, "type": kind, "typeVersion": version, "position": []int{0, 0}, "parameters": parameters}
		if pool != "" && !strings.HasSuffix(kind, "Trigger") {
			n["pool"] = pool
		}
		return n
	}
	effect := func(name, order string) object {
		return object{
			"method": "POST", "url": ledger + "/" + name, "sendHeaders": true,
			"headerParameters": object{"parameters": []object{{"name": orderHeader, "value": order}}},
			"options":          object{},
		}
	}
	step := func(name, order string) object {
		return node(name, "n8n-nodes-base.httpRequest", 4.2, effect(name, order))
	}
	tool := func(name string) object {
		parameters := effect(name, "={{ $execution.id }}")
		parameters["toolDescription"] = "Does " + name
		parameters["sendBody"] = true
		parameters["bodyParameters"] = object{"parameters": []object{{"name": "text", "value": "={{ $fromAI('text', 'what to do', 'string') }}"}}}
		n := node(name, "n8n-nodes-base.httpRequestTool", 4.2, parameters)
		if name == toolStock {
			n["retryOnFail"], n["maxTries"], n["waitBetweenTries"] = true, 4, 500
		}
		return n
	}
	model := func(scenario string) object {
		n := node("Model", "@n8n/n8n-nodes-langchain.lmChatOpenAi", 1.3, object{
			"model": object{"__rl": true, "mode": "id", "value": scenario}, "responsesApiEnabled": false, "options": object{},
		})
		n["credentials"] = object{"openAiApi": object{"id": modelCredential, "name": "Mock LLM"}}
		return n
	}
	start := node("Start", "n8n-nodes-base.manualTrigger", 1, object{})
	agent := node(agentName, "@n8n/n8n-nodes-langchain.agent", 3.1, object{"promptType": "define", "text": "Handle the order.", "options": object{}})
	common := func(scenario string) []object {
		return []object{start, agent, model(scenario), tool(toolCharge), tool(toolMail), tool(toolStock)}
	}
	ungated := []string{"Model ~ai_languageModel~> AI Agent", "Charge ~ai_tool~> AI Agent", "Mail ~ai_tool~> AI Agent", "Stock ~ai_tool~> AI Agent"}
	add := func(name string, gated bool, nodes []object, links, effects, once []string) {
		w.shapes = append(w.shapes, &shape{
			name: name, gated: gated, document: document(run+"-"+name, nodes, links),
			effects: append(append([]string{}, tools...), effects...),
			nodes:   append(append([]string{"Start", agentName}, tools...), once...),
		})
	}
	add("plain", false, common("order"), append([]string{"Start -> AI Agent"}, ungated...), nil, nil)
	mail := tool(toolMail)
	mail["onWorkerLost"] = "giveUp"
	add("once", false, []object{start, agent, model("order"), tool(toolCharge), mail, tool(toolStock)},
		append([]string{"Start -> AI Agent"}, ungated...), nil, nil)
	w.shapes[len(w.shapes)-1].once = true
	add("wait", false, append(common("order"),
		node("Wait", "n8n-nodes-base.wait", 1.1, object{"amount": shortWait, "unit": "seconds"}), step(stepShip, "={{ $execution.id }}")),
		append([]string{"Start -> AI Agent", "AI Agent -> Wait", "Wait -> Ship"}, ungated...), []string{stepShip}, []string{"Wait", stepShip})
	add("subworkflow", false, append(common("order"), node("Call", "n8n-nodes-base.executeWorkflow", 1.2, object{
		"source": "database", "workflowId": object{"__rl": true, "mode": "id", "value": w.id}, "options": object{},
	})), append([]string{"Start -> Call", "Call -> AI Agent"}, ungated...), []string{stepPack}, []string{"Call"})
	add("approval", true, append(common("gated"), node("Gate", "reprise.approvalHitlTool", 1, object{"message": "May I charge the card?"})),
		[]string{
			"Start -> AI Agent", "Model ~ai_languageModel~> AI Agent", "Charge ~ai_tool~> Gate", "Gate ~ai_tool~> AI Agent",
			"Mail ~ai_tool~> AI Agent", "Stock ~ai_tool~> AI Agent",
		}, nil, []string{"Gate"})
	w.child = document(w.id, []object{
		node("Called", "n8n-nodes-base.executeWorkflowTrigger", 1.1, object{"inputSource": "passthrough"}), step(stepPack, "={{ $json.order }}"),
	}, []string{"Called -> Pack"})
	return w
}

// document is a workflow. Its links are "A -> B" or "Tool ~ai_tool~> Agent".
func document(id string, nodes []object, links []string) []byte {
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
	data, err := json.Marshal(object{
		"id": id, "name": "Chaos: " + id, "nodes": nodes, "connections": connections, "settings": object{"executionOrder": "v1", "onWorkerLost": "repeat"},
	})
	if err != nil {
		panic(err) // maps and slices of plain values
	}
	return data
}
