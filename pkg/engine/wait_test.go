package engine_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// parseWait reads what a node waits for; see parseResult.
func parseWait(text string) (*engine.Wait, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil, fmt.Errorf("wait for what?")
	}
	w := &engine.Wait{Kind: engine.WaitKind(words[0])}
	switch w.Kind {
	case engine.WaitWebhook:
		w.Webhook = &engine.WebhookWait{}
	case engine.WaitApproval:
		w.Question = &engine.Question{}
	case engine.WaitChildren:
		w.Children = &engine.Children{}
	}
	var plain []string
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch {
		case key == "until":
			var err error
			if w.Until, err = strconv.ParseInt(value, 10, 64); err != nil {
				return nil, err
			}
		case key == "suffix" && w.Webhook != nil:
			w.Webhook.Suffix = value
		case word == "sequential" && w.Children != nil:
			w.Children.Sequential = true
		case word == "stop" && w.Children != nil:
			w.Children.StopOnError = true
		case word == "detached" && w.Children != nil:
			w.Children.Detached = true
		default:
			plain = append(plain, word)
		}
	}
	switch {
	case w.Kind == engine.WaitTime && len(plain) == 1:
		var err error
		w.Until, err = strconv.ParseInt(plain[0], 10, 64)
		return w, err
	case w.Question != nil && len(plain) == 2:
		w.Question.Tool, w.Question.Arguments = spaced(plain[0]), json.RawMessage(plain[1])
	case w.Children != nil && len(plain) == 1:
		n, err := strconv.Atoi(plain[0])
		if err != nil {
			return nil, err
		}
		for i := range n {
			run := engine.ChildRun{WorkflowID: "sub"}
			_ = json.Unmarshal(fmt.Appendf(nil, `[{"json":{"child":%d}}]`, i), &run.Input)
			w.Children.Runs = append(w.Children.Runs, run)
		}
	}
	return w, nil
}

// waitOf finds the wait of a node's run.
func (x *execution) waitOf(t *testing.T, d *datadriven.TestData, target string) (string, error) {
	if d.HasArg("token") {
		var token string
		d.ScanArgs(t, "token", &token)
		return token, nil
	}
	name, run := spaced(target), -1
	if n, r, ok := strings.Cut(target, ":"); ok {
		var err error
		if run, err = strconv.Atoi(r); err != nil {
			return "", err
		}
		name = spaced(n)
	}
	for _, p := range x.state.ParkedInOrder() {
		if p.Entry.Node == name && (run < 0 || p.Entry.Run == run) {
			return p.Token, nil
		}
	}
	return "", fmt.Errorf("%s does not wait", target)
}

// waitEvent is the event of a resume, approve, deny or child verb.
func (x *execution) waitEvent(d *datadriven.TestData, token string) (engine.Event, error) {
	switch d.Cmd {
	case "approve", "deny":
		return engine.Resumed{At: x.now, Token: token, Decision: &engine.Decision{
			Approved: d.Cmd == "approve", Feedback: strings.TrimSpace(d.Input), At: x.now,
		}}, nil
	case "resume":
		return engine.Resumed{At: x.now, Token: token, Data: json.RawMessage(d.Input)}, nil
	}
	ev := engine.ChildFinished{At: x.now, Token: token, Result: engine.ChildResult{Status: engine.StatusSuccess}}
	for _, arg := range d.CmdArgs {
		if n, err := strconv.Atoi(arg.Key); err == nil {
			ev.Index = n
		}
	}
	if text, ok := strings.CutPrefix(strings.TrimSpace(d.Input), "fail "); ok {
		ev.Result.Status, ev.Result.Error = engine.StatusError, &engine.NodeError{Message: text}
		return ev, nil
	}
	res, err := parseResult(d.Input)
	ev.Result.Outputs = res.Outputs
	return ev, err
}

func showResumption(r *engine.Resumption) string {
	text := string(r.Kind)
	if r.Expired {
		text += " expired"
	}
	if r.Data != nil {
		text += " " + string(r.Data)
	}
	if r.Decision != nil {
		text += fmt.Sprintf(" approved=%v", r.Decision.Approved)
		if r.Decision.Feedback != "" {
			text += fmt.Sprintf(" %q", r.Decision.Feedback)
		}
	}
	for _, c := range r.Children {
		switch {
		case c == nil:
			text += " none"
		case c.Error != nil:
			text += fmt.Sprintf(" error %q", c.Error.Message)
		default:
			text += " " + string(c.Status) + " " + showOutputs(c.Outputs)
		}
	}
	return text
}
