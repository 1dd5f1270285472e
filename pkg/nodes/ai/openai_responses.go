package ai

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// responsesRequest writes the body of a call of the Responses API.
func (m *openAI) responsesRequest(q question) json.RawMessage {
	b := append(make([]byte, 0, 1024), `{"model":`...)
	b = quoted(b, m.model)
	s := m.settings
	b = optional(b, "temperature", s.temperature)
	b = optional(b, "top_p", s.topP)
	if s.maxTokens > 0 {
		b = strconv.AppendInt(append(b, `,"max_output_tokens":`...), int64(s.maxTokens), 10)
	}
	if s.format != "" {
		b = append(quoted(append(b, `,"text":{"format":{"type":`...), s.format), "}}"...)
	}
	if s.effort != "" {
		b = append(quoted(append(b, `,"reasoning":{"effort":`...), s.effort), '}')
	}
	if len(q.Tools) > 0 {
		b = append(b, `,"tools":[`...)
		for i, t := range q.Tools {
			if i > 0 {
				b = append(b, ',')
			}
			b = quoted(append(b, `{"type":"function","name":`...), t.name)
			b = quoted(append(b, `,"description":`...), t.description)
			b = append(append(b, `,"parameters":`...), t.schema...)
			b = append(b, `,"strict":false}`...)
		}
		b = append(b, ']')
	}
	b = append(b, `,"input":[`...)
	for i, message := range q.Messages {
		if i > 0 {
			b = append(b, ',')
		}
		b = responsesItems(b, message)
	}
	return append(b, "]}"...)
}

// responsesItems writes a message as the API's input items: text and each call
// are items of their own.
func responsesItems(b []byte, m message) []byte {
	if m.Role == roleTool {
		b = quoted(append(b, `{"type":"function_call_output","call_id":`...), m.ToolCallID)
		return append(quoted(append(b, `,"output":`...), m.Content), '}')
	}
	if m.Content != "" || len(m.ToolCalls) == 0 {
		b = quoted(append(b, `{"type":"message","role":`...), string(m.Role))
		b = append(quoted(append(b, `,"content":`...), m.Content), '}')
		if len(m.ToolCalls) > 0 {
			b = append(b, ',')
		}
	}
	for i, c := range m.ToolCalls {
		if i > 0 {
			b = append(b, ',')
		}
		b = quoted(append(b, `{"type":"function_call","call_id":`...), c.ID)
		b = quoted(append(b, `,"name":`...), c.Name)
		b = append(quoted(append(b, `,"arguments":`...), c.replayed()), '}')
	}
	return b
}

// readResponse reads an answer of the Responses API.
func readResponse(body []byte) (*reply, error) {
	if !gjson.ValidBytes(body) {
		return nil, &badAnswer{"it is not JSON: " + shortened(strings.TrimSpace(string(body)), 200)}
	}
	root := gjson.ParseBytes(body)
	if failure := root.Get("error.message"); failure.Exists() || root.Get("status").Str == "failed" {
		return nil, &badAnswer{"the model failed: " + failure.String()}
	}
	if !root.Get("output").IsArray() {
		return nil, &badAnswer{"it has no output: " + shortened(string(body), 200)}
	}
	r := &reply{
		Finish: root.Get("incomplete_details.reason").String(),
		Model:  root.Get("model").String(),
		Usage:  usageOf(root.Get("usage.input_tokens"), root.Get("usage.output_tokens"), root.Get("usage.total_tokens")),
	}
	var texts []string
	for _, item := range root.Get("output").Array() {
		switch item.Get("type").Str {
		case "message":
			if t := contentText(item.Get("content")); t != "" {
				texts = append(texts, t)
			}
		case "function_call":
			r.Calls = append(r.Calls, toolCall{
				ID: item.Get("call_id").String(), Name: item.Get("name").String(), Arguments: arguments(item.Get("arguments")),
			})
		}
	}
	r.Text = strings.Join(texts, "\n")
	return r, nil
}
