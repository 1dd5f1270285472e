package workflow

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
)

// StickyNote is the type of the notes that people put beside nodes.
const StickyNote = "n8n-nodes-base.stickyNote"

// problem keeps what Parse forgave for Validate to report.
func (w *Workflow) problem(s Severity, node, field, format string, args ...any) {
	w.problems = append(w.problems, Problem{s, node, field, fmt.Sprintf(format, args...)})
}

func (w *Workflow) decodeNodes(nodes gjson.Result) error {
	nodes = unquoted(nodes)
	if nodes.Type == gjson.Null {
		return nil
	}
	if !nodes.IsArray() {
		return fmt.Errorf("not a workflow: %q is %s, want a list", "nodes", describe(nodes))
	}
	var err error
	i := 0
	nodes.ForEach(func(_, v gjson.Result) bool {
		switch {
		case v.IsObject():
			w.add(w.decodeNode(v))
		case v.Type != gjson.Null:
			err = fmt.Errorf("not a workflow: nodes[%d] is %s, want an object", i, describe(v))
		}
		i++
		return err == nil
	})
	return err
}

func (w *Workflow) add(n *Node) {
	if n.Type == StickyNote {
		w.Notes = append(w.Notes, n)
		return
	}
	w.Nodes = append(w.Nodes, n)
	if _, taken := w.byName[n.Name]; !taken {
		w.byName[n.Name] = n
	}
}

func (w *Workflow) decodeNode(v gjson.Result) *Node {
	n := &Node{TypeVersion: 1, Parameters: json.RawMessage("{}")}
	n.Name = text(v.Get("name")) // first, for the problems of other fields
	unreadable := func(field, want string, v gjson.Result) {
		if n.Type != StickyNote {
			w.problem(SeverityError, n.Name, field, "is %s, want %s", describe(v), want)
		}
	}
	asInt := func(field string, v gjson.Result) int {
		i, ok := integer(v)
		if !ok {
			unreadable(field, "a number", v)
		}
		return i
	}
	asBool := func(field string, v gjson.Result) bool {
		b, ok := boolean(v)
		if !ok {
			unreadable(field, "true or false", v)
		}
		return b
	}
	v.ForEach(func(key, v gjson.Result) bool {
		var ok bool
		switch field := key.Str; field {
		case "id":
			n.ID = text(v)
		case "type":
			n.Type = text(v)
		case "typeVersion":
			if n.TypeVersion, ok = number(v, 1); !ok {
				unreadable(field, "a number", v)
			}
		case "position":
			n.Position = position(v)
		case "parameters":
			if v = unquoted(v); v.IsObject() {
				n.Parameters = json.RawMessage(v.Raw)
			} else if v.Type != gjson.Null && v.Raw != "[]" {
				unreadable(field, "an object", v)
			}
		case "credentials":
			n.Credentials = credentials(v)
		case "disabled":
			n.Disabled = asBool(field, v)
		case "retryOnFail":
			n.RetryOnFail = asBool(field, v)
		case "maxTries":
			n.MaxTries = asInt(field, v)
		case "waitBetweenTries":
			n.WaitBetweenTries = asInt(field, v)
		case "alwaysOutputData":
			n.AlwaysOutputData = asBool(field, v)
		case "executeOnce":
			n.ExecuteOnce = asBool(field, v)
		case "onError":
			n.OnError = OnError(text(v))
		case "continueOnFail":
			n.ContinueOnFail = asBool(field, v)
		case "webhookId":
			n.WebhookID = text(v)
		case "timeout":
			n.Timeout = asInt(field, v)
		case "pool":
			n.Pool = text(v)
		case "onWorkerLost":
			n.OnWorkerLost = OnWorkerLost(text(v))
		case "rateLimit":
			n.RateLimit = text(v)
		}
		return true
	})
	return n
}

// position reads [x, y] or {"x": …, "y": …}; what is missing is 0.
func position(v gjson.Result) (p [2]float64) {
	if v.IsObject() {
		p[0], _ = number(v.Get("x"), 0)
		p[1], _ = number(v.Get("y"), 0)
		return p
	}
	if !v.IsArray() {
		return p
	}
	i := 0
	v.ForEach(func(_, v gjson.Result) bool {
		p[i], _ = number(v, 0)
		i++
		return i < len(p)
	})
	return p
}

// credentials reads references by id and name; the oldest files have the name
// alone. A null reference is left out.
func credentials(v gjson.Result) map[string]CredentialRef {
	if !v.IsObject() {
		return nil
	}
	refs := map[string]CredentialRef{}
	v.ForEach(func(key, v gjson.Result) bool {
		switch {
		case v.IsObject():
			refs[key.Str] = CredentialRef{ID: text(v.Get("id")), Name: text(v.Get("name"))}
		case text(v) != "":
			refs[key.Str] = CredentialRef{Name: text(v)}
		}
		return true
	})
	if len(refs) == 0 {
		return nil
	}
	return refs
}

func (w *Workflow) decodeSettings(v gjson.Result) {
	v = unquoted(v)
	if !v.IsObject() {
		return
	}
	all := members(v)
	s := &w.Settings
	s.ExecutionOrder = text(all["executionOrder"])
	s.ToolExecution = text(all["toolExecution"])
	s.ErrorWorkflow = named(all["errorWorkflow"])
	s.Timezone = named(all["timezone"])
	s.OnWorkerLost = OnWorkerLost(text(all["onWorkerLost"]))
	s.RateLimit, s.Priority = text(all["rateLimit"]), text(all["priority"])
	var ok bool
	if s.ExecutionTimeout, ok = number(all["executionTimeout"], 0); !ok {
		w.problem(SeverityError, "", "settings.executionTimeout", "is %s, want a number of seconds", describe(all["executionTimeout"]))
	}
	if s.MaxRunsPerNode, ok = number(all["maxRunsPerNode"], 0); !ok {
		w.problem(SeverityError, "", "settings.maxRunsPerNode", "is %s, want a number", describe(all["maxRunsPerNode"]))
	}
	if s.MaxConcurrency, ok = number(all["maxConcurrency"], 0); !ok {
		w.problem(SeverityError, "", "settings.maxConcurrency", "is %s, want a number", describe(all["maxConcurrency"]))
	}
}

// named reads a setting in which "DEFAULT" is n8n's word for none.
func named(v gjson.Result) string {
	if s := text(v); !strings.EqualFold(s, "default") {
		return s
	}
	return ""
}

func (w *Workflow) decodePinData(v gjson.Result) {
	v = unquoted(v)
	if !v.IsObject() {
		return
	}
	v.ForEach(func(key, v gjson.Result) bool {
		if v.Type == gjson.Null {
			return true
		}
		items, err := decodeItems(v)
		if err != nil {
			w.problem(SeverityError, key.Str, "pinData", "%v", err)
			return true
		}
		if w.PinData == nil {
			w.PinData = map[string]Items{}
		}
		w.PinData[key.Str] = items
		return true
	})
}
