package trigger_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/internal/stack"
)

const family = "@n8n/n8n-nodes-langchain."

// chatFlow is a chat with an Agent, whose memory is connected to the trigger too.
func chatFlow(id string, options, memory object, connected bool) []byte {
	users := []object{{"node": "Agent", "type": "ai_memory", "index": 0}}
	if connected {
		users = append(users, object{"node": "Chat", "type": "ai_memory", "index": 0})
	}
	model := node("Model", family+"lmChatOpenAi", 1.3, object{"model": object{"__rl": true, "mode": "id", "value": "demo"}, "responsesApiEnabled": false})
	model["credentials"] = object{"openAiApi": object{"id": stack.MockCredentialID, "name": "Mock"}}
	trigger := node("Chat", chat, 1.1, object{"public": true, "options": options})
	trigger["webhookId"] = id
	calculator := node("Calculator", family+"toolCalculator", 1, object{})
	data, _ := json.Marshal(object{
		"id": id, "name": id, "settings": object{"executionOrder": "v1"},
		"nodes": []object{trigger, node("Agent", family+"agent", 3.1, object{}), model, calculator, node("Memory", family+"memoryBufferWindow", 1.3, memory)},
		"connections": object{
			"Chat":       object{"main": [][]object{{{"node": "Agent", "type": "main", "index": 0}}}},
			"Model":      object{"ai_languageModel": [][]object{{{"node": "Agent", "type": "ai_languageModel", "index": 0}}}},
			"Calculator": object{"ai_tool": [][]object{{{"node": "Agent", "type": "ai_tool", "index": 0}}}},
			"Memory":     object{"ai_memory": [][]object{users}},
		},
	})
	return data
}

// chatAt posts to a chat.
func (l *lab) chatAt(t *testing.T, id string, message object) (status int, answer gjson.Result) {
	t.Helper()
	data, err := json.Marshal(message)
	require.NoError(t, err)
	status, _, body := l.do(t, request(t, "POST", l.PublicURL+"/webhook/"+id+"/chat", string(data), "Content-Type", "application/json"))
	return status, gjson.Parse(body)
}

// A chat shows the messages of its memory: all of a session's, and no other's.
func TestPreviousSession(t *testing.T) {
	l := startWith(t, stack.Config{MockLLM: true})
	load := func(session string) object { return object{"action": "loadPreviousSession", "sessionId": session} }
	memory := object{"loadPreviousSession": "memory"}
	for id, parameters := range map[string]object{
		"input": {"contextWindowLength": 1}, // the Agent is told less than is kept
		"item":  {"sessionIdType": "customKey", "sessionKey": "=for {{ $json.sessionId }}"},
		"node":  {"sessionIdType": "customKey", "sessionKey": "={{ $('Chat').item.json.sessionId + $('Chat').first().json.sessionId }}"},
	} {
		t.Run(id, func(t *testing.T) {
			l.activate(t, chatFlow(id, memory, parameters, true))
			l.hosted(t, "/webhook/"+id+"/chat")
			status, answer := l.chatAt(t, id, load("s1"))
			require.Equal(t, 200, status)
			require.JSONEq(t, `{"data":[]}`, answer.Raw)
			var said []string
			for _, session := range []string{"s1", "s2"} {
				for _, text := range []string{"compute 6 * 7 in " + session, "hello again from " + session} {
					status, answer = l.chatAt(t, id, object{"action": "sendMessage", "sessionId": session, "chatInput": text})
					require.Equal(t, 200, status, answer.Raw)
					said = append(said, text, answer.Get("output").Str)
				}
			}
			status, answer = l.chatAt(t, id, load("s1"))
			require.Equal(t, 200, status)
			var shown []string
			for i, m := range answer.Get("data").Array() {
				require.Equal(t, []string{"HumanMessage", "AIMessage"}[i%2], m.Get("id.2").Str)
				require.Equal(t, "constructor", m.Get("type").Str)
				shown = append(shown, m.Get("kwargs.content").Str)
			}
			require.Equal(t, said[:4], shown, "without the calls of tools")
			status, _ = l.chatAt(t, id, object{"action": "loadPreviousSession"})
			require.Equal(t, 400, status)
		})
	}
	_, _, page := l.do(t, request(t, "GET", l.PublicURL+"/webhook/input/chat", ""))
	require.Contains(t, page, "loadPreviousSession")
	require.Contains(t, page, "New conversation")

	l.activate(t, chatFlow("off", object{}, object{}, true))
	l.activate(t, chatFlow("apart", memory, object{}, false))
	l.activate(t, chatFlow("wrong", memory, object{"sessionIdType": "customKey", "sessionKey": "={{ $('Agent').first().json.x }}"}, true))
	for _, id := range []string{"off", "apart", "wrong"} {
		l.hosted(t, "/webhook/"+id+"/chat")
	}
	status, answer := l.chatAt(t, "off", load("s1"))
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"data":[]}`, answer.Raw)
	_, _, page = l.do(t, request(t, "GET", l.PublicURL+"/webhook/off/chat", ""))
	require.NotContains(t, page, "loadPreviousSession")
	for _, id := range []string{"apart", "wrong"} {
		status, answer = l.chatAt(t, id, load("s1"))
		require.Equal(t, 500, status)
		require.Contains(t, answer.Get("message").Str, "not set up correctly", "why is not the caller's business")
	}
}

// The workflow itself may give the messages.
func TestPreviousSessionByTheWorkflow(t *testing.T) {
	l := start(t)
	trigger := node("Chat", chat, 1.1, object{"public": true, "options": object{"loadPreviousSession": "manually"}})
	l.activate(t, flow("own", trigger, node("Say", code, 2, object{"jsCode": "return [{json: {data: [{kwargs: {content: $json.action + $json.sessionId}}]}}]"})))
	l.hosted(t, "/webhook/hook-Chat/chat")
	status, answer := l.chatAt(t, "hook-Chat", object{"action": "loadPreviousSession", "sessionId": "s1"})
	require.Equal(t, 200, status)
	require.Equal(t, "loadPreviousSessions1", answer.Get("data.0.kwargs.content").Str, answer.Raw)
}
