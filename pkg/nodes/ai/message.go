package ai

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
)

// role says who wrote a message.
type role string

const (
	roleSystem    role = "system"
	roleUser      role = "user"
	roleAssistant role = "assistant"
	roleTool      role = "tool"
)

// message is one message of a conversation. Its JSON is the format of memories.
type message struct {
	Role       role       `json:"role"`
	Content    string     `json:"content,omitempty"`
	ToolCalls  []toolCall `json:"toolCalls,omitempty"`
	ToolCallID string     `json:"toolCallId,omitempty"`
}

// toolCall is a model's wish to run a tool. Arguments is the text the model
// wrote, not always JSON.
type toolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments,omitempty"`
}

// replayed is the arguments' text for the history sent to a model. Servers
// parse it, so what is no object is replaced; the answer to the call quotes it.
func (c toolCall) replayed() string {
	if isObject(c.Arguments) {
		return c.Arguments
	}
	return "{}"
}

func isObject(text string) bool {
	return strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") && json.Valid([]byte(text))
}

// strict returns history without what a model's server would refuse: answers
// without their call, calls without all their answers. A memory's window may
// begin in the middle of a turn.
func strict(history []message) []message {
	kept := history[:0:0]
	for i := 0; i < len(history); {
		m := history[i]
		i++
		if m.Role == roleTool {
			continue
		}
		if len(m.ToolCalls) == 0 {
			kept = append(kept, m)
			continue
		}
		first := i
		for i < len(history) && history[i].Role == roleTool {
			i++
		}
		if answers, ok := answersInOrder(m.ToolCalls, history[first:i]); ok {
			kept = append(append(kept, m), answers...)
		}
	}
	return kept
}

func answersInOrder(calls []toolCall, results []message) ([]message, bool) {
	ordered := make([]message, 0, len(calls))
	for _, call := range calls {
		found := false
		for _, result := range results {
			if result.ToolCallID == call.ID {
				ordered, found = append(ordered, result), true
				break
			}
		}
		if !found {
			return nil, false
		}
	}
	return ordered, true
}

// loggedResultBytes bounds what the log of a model call repeats of a tool's
// result; the whole is in the tool's record.
const loggedResultBytes = 1000

// transcript writes messages as n8n logs them for a model call.
func transcript(messages []message) string {
	var b strings.Builder
	for i, m := range messages {
		if i > 0 {
			b.WriteByte('\n')
		}
		switch m.Role {
		case roleSystem:
			b.WriteString("System: ")
		case roleUser:
			b.WriteString("Human: ")
		case roleTool:
			b.WriteString("Tool: ")
			b.WriteString(shortened(m.Content, loggedResultBytes))
			continue
		case roleAssistant:
			b.WriteString("AI: ")
			if len(m.ToolCalls) > 0 {
				writeCalls(&b, m.ToolCalls)
				continue
			}
		}
		b.WriteString(m.Content)
	}
	return b.String()
}

func writeCalls(b *strings.Builder, calls []toolCall) {
	b.WriteByte('[')
	for i, c := range calls {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"id":` + jsonobject.Quote(c.ID) + `,"name":` + jsonobject.Quote(c.Name) + `,"args":` + c.replayed() + `,"type":"tool_call"}`)
	}
	b.WriteByte(']')
}

// shortened cuts text to about limit bytes, at a rune.
func shortened(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && text[limit]&0xC0 == 0x80 {
		limit--
	}
	return text[:limit] + "…"
}

// plainJSON is raw without white space and without the escapes that Go's
// encoder puts on <, > and &, so that a model reads what the producer wrote.
func plainJSON(raw []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	compact := b.Bytes()
	if !bytes.Contains(compact, []byte(`\u00`)) {
		return compact
	}
	out := make([]byte, 0, len(compact))
	for i := 0; i < len(compact); i++ {
		if compact[i] != '\\' || i+1 >= len(compact) {
			out = append(out, compact[i])
			continue
		}
		if i+6 <= len(compact) {
			switch string(compact[i : i+6]) {
			case `\u003c`:
				out, i = append(out, '<'), i+5
				continue
			case `\u003e`:
				out, i = append(out, '>'), i+5
				continue
			case `\u0026`:
				out, i = append(out, '&'), i+5
				continue
			}
		}
		out = append(out, compact[i], compact[i+1])
		i++
	}
	return out
}
