package mockllm

import (
	"net/http"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	names := []string{"demo"}
	if s.config.Script != nil {
		for name := range s.config.Script.models {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	b := []byte(`{"object":"list","data":[`)
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"id":`...)
		b = gjson.AppendJSONString(b, name)
		b = append(b, `,"object":"model","created":1700000000,"owned_by":"mockllm"}`...)
	}
	writeJSON(w, http.StatusOK, append(b, "]}"...))
}

func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	req, a := s.decide(w, r, readChat)
	if a == nil {
		return
	}
	id := s.id("chatcmpl-")
	if req.stream {
		streamChat(w, id, req, a)
		return
	}
	// The answer is written by hand: reflection costs more than all the rest.
	b := make([]byte, 0, 512+2*len(a.content)+256*len(a.calls))
	b = appendHead(b, id, "chat.completion", req.model)
	b = append(b, `"choices":[{"index":0,"message":{"role":"assistant","content":`...)
	if a.content == "" && len(a.calls) > 0 {
		b = append(b, "null"...)
	} else {
		b = gjson.AppendJSONString(b, a.content)
	}
	b = append(b, `,"refusal":null`...)
	if len(a.calls) > 0 {
		b = append(b, `,"tool_calls":[`...)
		for i := range a.calls {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendChatCall(b, &a.calls[i], -1)
		}
		b = append(b, ']')
	}
	b = append(b, `},"logprobs":null,"finish_reason":"`...)
	b = append(b, a.finish()...)
	b = append(b, `"}],"usage":`...)
	b = appendChatUsage(b, req, a)
	writeJSON(w, http.StatusOK, append(b, '}'))
}

func (a *answer) finish() string {
	if len(a.calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

func appendHead(b []byte, id, object, model string) []byte {
	b = append(b, `{"id":"`...)
	b = append(b, id...)
	b = append(b, `","object":"`...)
	b = append(b, object...)
	b = append(b, `","created":`...)
	b = strconv.AppendInt(b, time.Now().Unix(), 10)
	b = append(b, `,"model":`...)
	b = gjson.AppendJSONString(b, model)
	return append(b, `,"system_fingerprint":"fp_mockllm",`...)
}

// appendChatCall writes a tool call; index is its place in a stream, -1 outside.
func appendChatCall(b []byte, call *toolCall, index int) []byte {
	b = append(b, '{')
	if index >= 0 {
		b = append(b, `"index":`...)
		b = strconv.AppendInt(b, int64(index), 10)
		b = append(b, ',')
	}
	b = append(b, `"id":`...)
	b = gjson.AppendJSONString(b, call.id)
	b = append(b, `,"type":"function","function":{"name":`...)
	b = gjson.AppendJSONString(b, call.name)
	b = append(b, `,"arguments":`...)
	b = gjson.AppendJSONString(b, call.args)
	return append(b, "}}"...)
}

func appendChatUsage(b []byte, req *request, a *answer) []byte {
	in, out := req.tokens(), a.tokens()
	b = append(b, `{"prompt_tokens":`...)
	b = strconv.AppendInt(b, int64(in), 10)
	b = append(b, `,"completion_tokens":`...)
	b = strconv.AppendInt(b, int64(out), 10)
	b = append(b, `,"total_tokens":`...)
	b = strconv.AppendInt(b, int64(in+out), 10)
	return append(b, '}')
}

// streamChat sends the answer word by word, then the calls, then how it ended.
func streamChat(w http.ResponseWriter, id string, req *request, a *answer) {
	s := newStream(w)
	chunk := func(delta []byte, finish string) {
		b := append(s.begin(""), appendHead(nil, id, "chat.completion.chunk", req.model)...)
		b = append(b, `"choices":[{"index":0,"delta":{`...)
		b = append(b, delta...)
		b = append(b, `},"logprobs":null,"finish_reason":`...)
		if finish == "" {
			b = append(b, "null"...)
		} else {
			b = append(append(append(b, '"'), finish...), '"')
		}
		s.end(append(b, "}]}"...))
	}
	chunk([]byte(`"role":"assistant","content":""`), "")
	for _, word := range strings.SplitAfter(a.content, " ") {
		if word != "" {
			chunk(gjson.AppendJSONString([]byte(`"content":`), word), "")
		}
	}
	for i := range a.calls {
		chunk(append(appendChatCall([]byte(`"tool_calls":[`), &a.calls[i], i), ']'), "")
	}
	chunk(nil, a.finish())
	if req.includeUsage {
		b := append(s.begin(""), appendHead(nil, id, "chat.completion.chunk", req.model)...)
		b = append(b, `"choices":[],"usage":`...)
		s.end(append(appendChatUsage(b, req, a), '}'))
	}
	s.end(append(s.begin(""), "[DONE]"...))
}

// stream writes server-sent events, each at once.
type stream struct {
	w       http.ResponseWriter
	flusher http.Flusher
	buffer  []byte
}

func newStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	s := &stream{w: w}
	s.flusher, _ = w.(http.Flusher)
	return s
}

// begin returns the start of an event to append its data to; end sends it.
func (s *stream) begin(event string) []byte {
	b := s.buffer[:0]
	if event != "" {
		b = append(append(append(b, "event: "...), event...), '\n')
	}
	return append(b, "data: "...)
}

func (s *stream) end(b []byte) {
	b = append(b, "\n\n"...)
	s.buffer = b
	_, _ = s.w.Write(b) // the caller has gone when this fails
	if s.flusher != nil {
		s.flusher.Flush()
	}
}
