package ai

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
)

// newLimit are models that refuse max_tokens and want max_completion_tokens.
var newLimit = regexp.MustCompile(`^(o\d|gpt-5)`)

// chatRequest writes the body of a chat completion. It is written by hand: the
// library's typed parameters cost several times as much.
func (m *openAI) chatRequest(q question) json.RawMessage {
	b := append(make([]byte, 0, 1024), `{"model":`...)
	b = quoted(b, m.model)
	s := m.settings
	b = optional(b, "temperature", s.temperature)
	b = optional(b, "top_p", s.topP)
	b = optional(b, "frequency_penalty", s.frequencyPenalty)
	b = optional(b, "presence_penalty", s.presencePenalty)
	if s.maxTokens > 0 {
		if newLimit.MatchString(m.model) {
			b = append(b, `,"max_completion_tokens":`...)
		} else {
			b = append(b, `,"max_tokens":`...)
		}
		b = strconv.AppendInt(b, int64(s.maxTokens), 10)
	}
	if s.format != "" {
		b = quoted(append(b, `,"response_format":{"type":`...), s.format)
		b = append(b, '}')
	}
	if s.effort != "" {
		b = quoted(append(b, `,"reasoning_effort":`...), s.effort)
	}
	if len(q.Tools) > 0 {
		b = append(b, `,"tools":[`...)
		for i, t := range q.Tools {
			if i > 0 {
				b = append(b, ',')
			}
			b = quoted(append(b, `{"type":"function","function":{"name":`...), t.name)
			b = quoted(append(b, `,"description":`...), t.description)
			b = append(append(b, `,"parameters":`...), t.schema...)
			b = append(b, `,"strict":false}}`...)
		}
		b = append(b, ']')
	}
	b = append(b, `,"messages":[`...)
	for i, message := range q.Messages {
		if i > 0 {
			b = append(b, ',')
		}
		b = chatMessage(b, message)
	}
	return append(b, "]}"...)
}

func chatMessage(b []byte, m message) []byte {
	b = quoted(append(b, `{"role":`...), string(m.Role))
	if m.ToolCallID != "" {
		b = quoted(append(b, `,"tool_call_id":`...), m.ToolCallID)
	}
	if m.Content == "" && len(m.ToolCalls) > 0 {
		b = append(b, `,"content":null`...)
	} else {
		b = quoted(append(b, `,"content":`...), m.Content)
	}
	if len(m.ToolCalls) > 0 {
		b = append(b, `,"tool_calls":[`...)
		for i, c := range m.ToolCalls {
			if i > 0 {
				b = append(b, ',')
			}
			b = quoted(append(b, `{"id":`...), c.ID)
			b = quoted(append(b, `,"type":"function","function":{"name":`...), c.Name)
			b = quoted(append(b, `,"arguments":`...), c.replayed())
			b = append(b, "}}"...)
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

// readChat reads a chat completion.
func readChat(body []byte) (*reply, error) {
	if !gjson.ValidBytes(body) {
		return nil, &badAnswer{"it is not JSON: " + shortened(strings.TrimSpace(string(body)), 200)}
	}
	root := gjson.ParseBytes(body)
	choice := root.Get("choices.0")
	if !choice.Get("message").IsObject() {
		return nil, &badAnswer{"it has no choices: " + shortened(string(body), 200)}
	}
	r := &reply{
		Text:   contentText(choice.Get("message.content")),
		Finish: choice.Get("finish_reason").String(),
		Model:  root.Get("model").String(),
		Usage: usageOf(root.Get("usage.prompt_tokens"), root.Get("usage.completion_tokens"),
			root.Get("usage.total_tokens")),
	}
	if r.Text == "" {
		r.Text = choice.Get("message.refusal").String()
	}
	for _, c := range choice.Get("message.tool_calls").Array() {
		call := toolCall{ID: c.Get("id").String(), Name: c.Get("function.name").String(), Arguments: arguments(c.Get("function.arguments"))}
		r.Calls = append(r.Calls, call)
	}
	return r, nil
}

// arguments is the text of a call's arguments. Some servers send an object
// where the API has a text, or nothing for a tool without arguments.
func arguments(value gjson.Result) string {
	if value.Type == gjson.String {
		if strings.TrimSpace(value.Str) == "" {
			return "{}"
		}
		return value.Str
	}
	if !value.Exists() || value.Type == gjson.Null {
		return "{}"
	}
	return value.Raw
}

// contentText joins the text blocks of a message. A message with nothing but
// thoughts gives these.
func contentText(content gjson.Result) string {
	if !content.IsArray() {
		return content.String()
	}
	var texts, thoughts []string
	for _, block := range content.Array() {
		switch block.Get("type").Str {
		case "text", "output_text":
			texts = append(texts, block.Get("text").String())
		case "refusal":
			texts = append(texts, block.Get("refusal").String())
		case "thinking":
			thoughts = append(thoughts, block.Get("thinking").String())
		}
	}
	if len(texts) == 0 {
		texts = thoughts
	}
	return strings.Join(texts, "\n")
}

func usageOf(prompt, completion, total gjson.Result) usage {
	u := usage{Prompt: int(prompt.Int()), Completion: int(completion.Int()), Total: int(total.Int())}
	if u.Total == 0 {
		u.Total = u.Prompt + u.Completion
	}
	return u
}

func quoted(b []byte, text string) []byte { return append(b, jsonobject.Quote(text)...) }

func optional(b []byte, name string, value *float64) []byte {
	if value == nil {
		return b
	}
	b = append(append(append(b, `,"`...), name...), `":`...)
	return strconv.AppendFloat(b, *value, 'g', -1, 64)
}
