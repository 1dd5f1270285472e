package ai

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// windowMemory is the last part of a conversation, kept by the process (node
// memoryBufferWindow).
type windowMemory struct {
	user, sub *node.Call

	mu sync.Mutex
	// fresh are messages that this slice will append, which LoadMemory does not know yet.
	fresh    map[string][]json.RawMessage
	appended []node.MemoryAppend
}

// findMemory returns the memory attached to a node, or nil.
func findMemory(user *node.Call) (*windowMemory, error) {
	found := user.SubNodes[workflow.Memory]
	if len(found) == 0 {
		return nil, nil
	}
	return openMemory(user, found[0])
}

func openMemory(user, sub *node.Call) (*windowMemory, error) {
	if sub.Node.Type != family+"memoryBufferWindow" {
		return nil, operationError(
			fmt.Sprintf("The memory %q (%s) is not supported", sub.Node.Name, strings.TrimPrefix(sub.Node.Type, family)),
			"Use a Simple Memory.")
	}
	return &windowMemory{user: user, sub: attached(user, sub), fresh: map[string][]json.RawMessage{}}, nil
}

// session names the conversation of an item. Workflows do not see each other's.
func (m *windowMemory) session(ctx context.Context, item int) (string, error) {
	kind, err := text(ctx, m.sub, item, "sessionIdType", "fromInput")
	if err != nil {
		return "", err
	}
	version := m.sub.Node.TypeVersion
	var key string
	switch {
	case version < 1.2 || kind == "customKey":
		fallback := ""
		if version < 1.1 {
			fallback = "chat_history"
		}
		if key, err = text(ctx, m.sub, item, "sessionKey", fallback); err != nil {
			return "", err
		}
		if key == "" && kind == "customKey" {
			return "", operationError("Key parameter is empty", "Provide a key to use as session ID in the 'Key' parameter or use the 'Connected Chat Trigger Node' option to use the session ID from your chat trigger.")
		}
	}
	if key == "" {
		key = field(m.user, item, "sessionId").String()
	}
	if key == "" {
		return "", operationError("No session ID found", "Expected to find the session ID in an input field called 'sessionId' (this is what the chat trigger node outputs). To use something else, change the 'Session ID' parameter.")
	}
	owner := m.user.Workflow.ID
	if owner == "" {
		owner = m.user.Workflow.Name
	}
	return owner + "__" + key, nil
}

// load returns the window of a conversation: as many exchanges as the node's
// context window, two messages each.
func (m *windowMemory) load(ctx context.Context, item int, runs *[]engine.SubRun) (history []message, session string, err error) {
	start := m.user.Now()
	if session, err = m.session(ctx, item); err != nil {
		return nil, "", err
	}
	exchanges, ok, err := number(ctx, m.sub, item, "contextWindowLength")
	if err != nil {
		return nil, "", err
	}
	if !ok {
		exchanges = 5
	}
	var raw []json.RawMessage
	limit := 2 * int(exchanges)
	if limit > 0 {
		if m.user.LoadMemory == nil {
			return nil, "", operationError("Memories are not available in this process", "")
		}
		if raw, err = m.user.LoadMemory(ctx, session, limit); err != nil {
			return nil, "", fmt.Errorf("load memory of %q: %w", m.sub.Node.Name, err)
		}
		m.mu.Lock()
		raw = append(raw[:len(raw):len(raw)], m.fresh[session]...)
		m.mu.Unlock()
		raw = raw[max(0, len(raw)-limit):]
	}
	for _, one := range raw {
		var parsed message
		if json.Unmarshal(one, &parsed) == nil && parsed.Role != "" {
			history = append(history, parsed)
		}
	}
	history = strict(history)
	*runs = append(*runs, engine.SubRun{
		Node: m.sub.Node.Name, Type: workflow.Memory,
		StartTime: start.UnixMilli(), Duration: m.user.Now().Sub(start).Milliseconds(),
		Input:  single(`{"action":"loadMemoryVariables","values":{}}`),
		Output: single(`{"action":"loadMemoryVariables","chatHistory":` + chatHistory(history) + `}`),
	})
	return history, session, nil
}

// Line is what the person or the Agent said in a conversation.
type Line struct {
	Person bool
	Text   string
}

// Transcript reads the conversation that a memory, sub, keeps for the first item of user: all that is kept of
// it, which is more than an Agent is told. Tool calls are left out.
func Transcript(ctx context.Context, user, sub *node.Call) ([]Line, error) {
	m, err := openMemory(user, sub)
	if err != nil {
		return nil, err
	}
	session, err := m.session(ctx, 0)
	if err != nil {
		return nil, err
	}
	raw, err := user.LoadMemory(ctx, session, 0)
	if err != nil {
		return nil, fmt.Errorf("load memory of %q: %w", sub.Node.Name, err)
	}
	lines := make([]Line, 0, len(raw))
	for _, one := range raw {
		var m message
		if json.Unmarshal(one, &m) == nil && m.Content != "" && (m.Role == roleUser || m.Role == roleAssistant) {
			lines = append(lines, Line{Person: m.Role == roleUser, Text: m.Content})
		}
	}
	return lines, nil
}

func chatHistory(history []message) string {
	var b strings.Builder
	b.WriteByte('[')
	for i, m := range history {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"role":` + jsonobject.Quote(string(m.Role)) + `,"content":` + jsonobject.Quote(shortened(m.Content, loggedResultBytes)) + `}`)
	}
	b.WriteByte(']')
	return b.String()
}

// save appends the messages of a finished item.
func (m *windowMemory) save(session string, messages []message) error {
	list := make([]json.RawMessage, len(messages))
	for i, one := range messages {
		raw, err := json.Marshal(one)
		if err != nil {
			return err
		}
		list[i] = raw
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fresh[session] = append(m.fresh[session], list...)
	m.appended = append(m.appended, node.MemoryAppend{Session: session, Messages: list})
	return nil
}
