package ai

import (
	"context"
	"encoding/json"
	"net"
	"net/url"

	"github.com/reprise-engine/reprise/pkg/node"
)

// named is a chat model that can say whose it is.
type named interface {
	// about returns the provider whose API is spoken, the model, and the server as host:port.
	about() (provider, model, server string)
}

func (m *openAI) about() (provider, model, server string) { return "openai", m.model, m.server }

// serverOf is the host and port of a base URL, "" when it has none.
func serverOf(base string) string {
	u, err := url.Parse(base)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// observed asks a model, and shows that to those who observe the process.
func observed(ctx context.Context, user *node.Call, model chatModel, q question) (*reply, error) {
	if user.ObserveModel == nil {
		return model.ask(ctx, q)
	}
	call := &node.ModelCall{Input: func() json.RawMessage { return shownMessages(q.Messages) }}
	if n, ok := model.(named); ok {
		call.Provider, call.Model, call.Server = n.about()
	}
	ctx, end := user.ObserveModel(ctx, call)
	defer end()
	answer, err := model.ask(ctx, q)
	if call.Err = err; err != nil {
		return nil, err
	}
	call.AnsweredBy, call.Finish = answer.Model, answer.Finish
	call.InputTokens, call.OutputTokens = answer.Usage.Prompt, answer.Usage.Completion
	call.Output = func() json.RawMessage {
		return shownMessages([]message{{Role: "assistant", Content: answer.Text, ToolCalls: answer.Calls}})
	}
	return answer, nil
}

// shownMessages are messages in the form of OpenTelemetry's conventions for generative AI: a
// list of {"role", "parts": [{"type": "text" | "tool_call" | "tool_call_response", …}]}.
func shownMessages(messages []message) json.RawMessage {
	b := []byte{'['}
	for i, m := range messages {
		if i > 0 {
			b = append(b, ',')
		}
		b = quoted(append(b, `{"role":`...), string(m.Role))
		b = append(b, `,"parts":[`...)
		part := func(kind string) {
			if b[len(b)-1] == '}' {
				b = append(b, ',')
			}
			b = quoted(append(b, `{"type":`...), kind)
		}
		switch {
		case m.ToolCallID != "":
			part("tool_call_response")
			b = quoted(append(b, `,"id":`...), m.ToolCallID)
			b = append(quoted(append(b, `,"response":`...), m.Content), '}')
		case m.Content != "":
			part("text")
			b = append(quoted(append(b, `,"content":`...), m.Content), '}')
		}
		for _, c := range m.ToolCalls {
			part("tool_call")
			b = quoted(append(b, `,"id":`...), c.ID)
			b = quoted(append(b, `,"name":`...), c.Name)
			b = append(quoted(append(b, `,"arguments":`...), c.Arguments), '}')
		}
		b = append(b, "]}"...)
	}
	return append(b, ']')
}
