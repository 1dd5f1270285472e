package mockllm

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// responses serves the Responses API: the same answers, told as output items.
func (s *Server) responses(w http.ResponseWriter, r *http.Request) {
	req, a := s.decide(w, r, readResponses)
	if a == nil {
		return
	}
	resp := response{
		head:  responseHead(s.id("resp_"), req.model),
		items: s.outputItems(a),
		usage: responseUsage(req, a),
	}
	if req.stream {
		streamResponse(w, &resp)
		return
	}
	writeJSON(w, http.StatusOK, resp.append(nil, "completed"))
}

// response is an answer of the Responses API in finished pieces.
type response struct {
	head  []byte
	items []outputItem
	usage []byte
}

// outputItem is a message (text) or a function call (args).
type outputItem struct {
	id         string
	text, args string
	message    bool
	call       *toolCall
}

func (s *Server) outputItems(a *answer) []outputItem {
	var items []outputItem
	if a.content != "" || len(a.calls) == 0 {
		items = append(items, outputItem{id: s.id("msg_"), message: true, text: a.content})
	}
	for i := range a.calls {
		items = append(items, outputItem{id: s.id("fc_"), call: &a.calls[i], args: a.calls[i].args})
	}
	return items
}

// append writes the item, with its content when it is done.
func (item *outputItem) append(b []byte, done bool) []byte {
	status := `","status":"in_progress"`
	if done {
		status = `","status":"completed"`
	}
	if item.message {
		b = append(append(append(b, `{"type":"message","id":"`...), item.id...), status...)
		b = append(b, `,"role":"assistant","content":[`...)
		if done {
			b = appendPart(b, item.text)
		}
		return append(b, "]}"...)
	}
	b = append(append(append(b, `{"type":"function_call","id":"`...), item.id...), status...)
	b = append(b, `,"call_id":`...)
	b = gjson.AppendJSONString(b, item.call.id)
	b = append(b, `,"name":`...)
	b = gjson.AppendJSONString(b, item.call.name)
	b = append(b, `,"arguments":`...)
	args := ""
	if done {
		args = item.args
	}
	return append(gjson.AppendJSONString(b, args), '}')
}

func appendPart(b []byte, text string) []byte {
	b = append(b, `{"type":"output_text","text":`...)
	b = gjson.AppendJSONString(b, text)
	return append(b, `,"annotations":[],"logprobs":[]}`...)
}

func responseHead(id, model string) []byte {
	b := append([]byte(`{"id":"`), id...)
	b = append(b, `","object":"response","created_at":`...)
	b = strconv.AppendInt(b, time.Now().Unix(), 10)
	b = append(b, `,"model":`...)
	b = gjson.AppendJSONString(b, model)
	return append(b, `,"error":null,"incomplete_details":null,"instructions":null,"metadata":{},`+
		`"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"temperature":1,"top_p":1,`...)
}

func responseUsage(req *request, a *answer) []byte {
	in, out := req.tokens(), a.tokens()
	b := append([]byte(`{"input_tokens":`), strconv.Itoa(in)...)
	b = append(b, `,"input_tokens_details":{"cached_tokens":0},"output_tokens":`...)
	b = strconv.AppendInt(b, int64(out), 10)
	b = append(b, `,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":`...)
	return append(strconv.AppendInt(b, int64(in+out), 10), '}')
}

// append writes the response; its output and usage only when it is completed.
func (r *response) append(b []byte, status string) []byte {
	b = append(b, r.head...)
	b = append(append(append(b, `"status":"`...), status...), `","output":[`...)
	usage := []byte("null")
	if status == "completed" {
		usage = r.usage
		for i := range r.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = r.items[i].append(b, true)
		}
	}
	b = append(append(b, `],"usage":`...), usage...)
	return append(b, '}')
}

func streamResponse(w http.ResponseWriter, resp *response) {
	s := newStream(w)
	sequence := 0
	emit := func(event string, rest func(b []byte) []byte) {
		b := append(append(append(s.begin(event), `{"type":"`...), event...), `","sequence_number":`...)
		b = append(strconv.AppendInt(b, int64(sequence), 10), ',')
		sequence++
		s.end(append(rest(b), '}'))
	}
	whole := func(event, status string) {
		emit(event, func(b []byte) []byte { return resp.append(append(b, `"response":`...), status) })
	}
	whole("response.created", "in_progress")
	whole("response.in_progress", "in_progress")
	for i := range resp.items {
		streamItem(emit, &resp.items[i], i)
	}
	whole("response.completed", "completed")
}

func streamItem(emit func(string, func([]byte) []byte), item *outputItem, index int) {
	at := `"output_index":` + strconv.Itoa(index)
	itemEvent := func(event string, done bool) {
		emit(event, func(b []byte) []byte { return item.append(append(append(b, at...), `,"item":`...), done) })
	}
	inside := at + `,"item_id":"` + item.id + `",`
	textEvent := func(event, where, field, text string) {
		emit(event, func(b []byte) []byte {
			b = append(append(append(append(append(b, inside...), where...), '"'), field...), `":`...)
			return gjson.AppendJSONString(b, text)
		})
	}
	itemEvent("response.output_item.added", false)
	if item.message {
		const where = `"content_index":0,`
		part := func(event, text string) {
			emit(event, func(b []byte) []byte {
				return appendPart(append(append(append(b, inside...), where...), `"part":`...), text)
			})
		}
		part("response.content_part.added", "")
		for _, word := range strings.SplitAfter(item.text, " ") {
			if word != "" {
				textEvent("response.output_text.delta", where+`"logprobs":[],`, "delta", word)
			}
		}
		textEvent("response.output_text.done", where+`"logprobs":[],`, "text", item.text)
		part("response.content_part.done", item.text)
	} else {
		textEvent("response.function_call_arguments.delta", "", "delta", item.args)
		textEvent("response.function_call_arguments.done", `"name":"`+jsonInside(item.call.name)+`",`, "arguments", item.args)
	}
	itemEvent("response.output_item.done", true)
}

// jsonInside is a text as it stands between the quotes of a JSON string.
func jsonInside(text string) string {
	quoted := gjson.AppendJSONString(nil, text)
	return string(quoted[1 : len(quoted)-1])
}
