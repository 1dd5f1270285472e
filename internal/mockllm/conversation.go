package mockllm

import (
	"strings"

	"github.com/tidwall/gjson"
)

// conversation is what an answer depends on: the last user message and the
// tool results after it.
type conversation struct {
	prompt  string
	results []toolResult
	// bytes of all messages, to estimate tokens from.
	bytes int
	calls []calledTool
}

type calledTool struct{ id, name string }

type toolResult struct{ name, text string }

func (c *conversation) user(text string) {
	c.prompt, c.results, c.calls = text, c.results[:0], c.calls[:0]
}

func (c *conversation) result(id, text string) {
	name := ""
	for i := len(c.calls) - 1; i >= 0; i-- {
		if c.calls[i].id == id {
			name = c.calls[i].name
			break
		}
	}
	c.results = append(c.results, toolResult{name: name, text: text})
}

// field is what a placeholder stands for.
func (c *conversation) field(name string) string {
	switch name {
	case "prompt":
		return c.prompt
	case "last":
		if n := len(c.results); n > 0 {
			return c.results[n-1].text
		}
		return ""
	}
	var b strings.Builder
	for i, r := range c.results {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(r.name)
		b.WriteString(" returned ")
		b.WriteString(r.text)
	}
	return b.String()
}

// request is what is read from either API's request.
type request struct {
	model        string
	stream       bool
	includeUsage bool
	tools        string // raw JSON array, "" when none are offered
	conversation conversation
}

// readChat reads a chat completions request in one pass. body must be valid JSON.
func readChat(body string) *request {
	r := &request{}
	gjson.Parse(body).ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "model":
			r.model = value.String()
		case "stream":
			r.stream = value.Bool()
		case "stream_options":
			r.includeUsage = value.Get("include_usage").Bool()
		case "tools":
			r.tools = value.Raw
		case "messages":
			r.conversation.bytes = len(value.Raw)
			value.ForEach(func(_, m gjson.Result) bool {
				r.conversation.chatMessage(m)
				return true
			})
		}
		return true
	})
	return r
}

func (c *conversation) chatMessage(m gjson.Result) {
	var role, id string
	var content, calls gjson.Result
	m.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "role":
			role = value.Str
		case "content":
			content = value
		case "tool_call_id":
			id = value.Str
		case "tool_calls":
			calls = value
		}
		return true
	})
	switch role {
	case "user":
		c.user(text(content))
	case "tool":
		c.result(id, text(content))
	case "assistant":
		calls.ForEach(func(_, call gjson.Result) bool {
			c.calls = append(c.calls, calledTool{id: call.Get("id").Str, name: call.Get("function.name").Str})
			return true
		})
	}
}

// readResponses reads a request of the Responses API.
func readResponses(body string) *request {
	r := &request{includeUsage: true}
	gjson.Parse(body).ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "model":
			r.model = value.String()
		case "stream":
			r.stream = value.Bool()
		case "tools":
			r.tools = value.Raw
		case "input":
			r.conversation.bytes = len(value.Raw)
			if value.Type == gjson.String {
				r.conversation.user(value.Str)
				return true
			}
			value.ForEach(func(_, item gjson.Result) bool {
				r.conversation.responsesItem(item)
				return true
			})
		}
		return true
	})
	return r
}

func (c *conversation) responsesItem(item gjson.Result) {
	switch item.Get("type").Str {
	case "function_call":
		c.calls = append(c.calls, calledTool{id: item.Get("call_id").Str, name: item.Get("name").Str})
	case "function_call_output":
		c.result(item.Get("call_id").Str, text(item.Get("output")))
	default:
		if item.Get("role").Str == "user" {
			c.user(text(item.Get("content")))
		}
	}
}

// text reads a content: a string, or a list of parts of which the texts count.
func text(content gjson.Result) string {
	if content.Type == gjson.String {
		return content.Str
	}
	if !content.IsArray() {
		return ""
	}
	var b strings.Builder
	content.ForEach(func(_, part gjson.Result) bool {
		b.WriteString(part.Get("text").Str)
		return true
	})
	return b.String()
}
