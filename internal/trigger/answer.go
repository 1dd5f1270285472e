package trigger

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// answer answers a call whose execution is stored.
func (c *call) answer(id engine.ExecutionID, a *answer) {
	if a.mode == "onReceived" {
		response := a.response
		if a.none {
			response.Body = ""
		}
		c.send(&response, a.response.Body != startedText)
		return
	}
	awaited := queue.Awaited{Outputs: true}
	if a.mode == "responseNode" {
		awaited = queue.Awaited{Nodes: a.nodes}
	}
	got, problem := c.await(id, awaited)
	switch {
	case problem != nil:
		problem.write(c.w, id)
	case a.mode == "responseNode" && got.Response != nil:
		c.send(got.Response, false)
	case got.Status != engine.StatusSuccess:
		c.failed()
	case a.mode == "responseNode": // the execution came to none of its nodes that answer
		c.send(&engine.WebhookResponse{}, false)
	default:
		c.lastNode(got.Outputs, a)
	}
}

// failed answers a call whose execution did not end well. Why is not the caller's business.
func (c *call) failed() {
	c.send(&engine.WebhookResponse{Status: http.StatusInternalServerError, Body: `{"message":"Error in workflow"}`}, false)
}

// await waits for the answer of an execution, for as long as callers wait. The execution
// goes on in any case.
func (c *call) await(id engine.ExecutionID, awaited queue.Awaited) (*queue.ResponseAnswer, *problem) {
	ctx, cancel := context.WithTimeout(c.r.Context(), c.host.MaxWait)
	defer cancel()
	got, err := c.host.Backend.WaitResponse(ctx, id, awaited)
	switch {
	case err == nil:
		return got, nil
	case ctx.Err() != nil:
		return nil, &problem{status: http.StatusGatewayTimeout,
			message: fmt.Sprintf("the execution goes on: it has given no answer within %v", c.host.MaxWait)}
	}
	c.host.log.Warn("answer of an execution is not known", zap.String("execution_id", string(id)), zap.Error(err))
	return nil, &problem{status: http.StatusBadGateway, message: "the execution goes on, but its answer is not known"}
}

// lastNode answers with what the last node gave out.
func (c *call) lastNode(outputs []workflow.Items, a *answer) {
	var items workflow.Items
	for _, output := range outputs {
		if len(output) > 0 {
			items = output
			break
		}
	}
	response := a.response
	switch {
	case a.data == "noData":
		c.send(&response, false)
		return
	case a.data == "allEntries":
		list := make([]json.RawMessage, len(items))
		for i := range items {
			list[i] = items[i].JSON
		}
		response.Body = string(toJSON(list))
		c.send(&response, false)
		return
	case len(items) == 0:
		c.send(&engine.WebhookResponse{Status: http.StatusInternalServerError, Body: `{"code":0,"message":"No item to return was found"}`}, false)
		return
	case a.data == "firstEntryBinary":
		file, ok := items[0].Binary[a.file]
		if !ok {
			c.send(&engine.WebhookResponse{Status: http.StatusInternalServerError, Body: `{"code":0,"message":"No binary data to return was found"}`}, false)
			return
		}
		response.Binary = &file
		c.send(&response, false)
		return
	}
	response.Body = string(items[0].JSON)
	if a.property != "" {
		value := gjson.GetBytes(items[0].JSON, a.property)
		response.Body = value.Raw
		if a.contentType != "" && value.Type == gjson.String {
			response.Body = value.Str
		}
	}
	if a.contentType != "" {
		response.Headers["Content-Type"] = a.contentType
	}
	c.send(&response, false)
}

// ownHeaders are the server's business.
var ownHeaders = map[string]bool{
	"Connection": true, "Content-Length": true, "Date": true, "Keep-Alive": true, "Proxy-Connection": true,
	"Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// maxAnswerFile bounds the file of an answer, which is read whole.
const maxAnswerFile = 64 << 20

// send writes an answer. text says that a body without a type of its own is a text and not JSON.
func (c *call) send(response *engine.WebhookResponse, text bool) {
	header := c.w.Header()
	// What an execution gives out is not this server's: as a page it gets an origin of its own.
	header.Set("Content-Security-Policy", "sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts allow-top-navigation")
	body := []byte(response.Body)
	kind := "application/json; charset=utf-8"
	if text {
		kind = "text/html; charset=utf-8" // as in n8n; the policy above keeps it apart
	}
	if file := response.Binary; file != nil {
		data, err := c.keep().Read(c.r.Context(), *file, maxAnswerFile)
		if err != nil {
			c.host.log.Warn("file of an answer cannot be read", zap.String("workflow_id", c.hook.id), zap.Error(err))
			(&problem{status: http.StatusInternalServerError, message: "the file of the answer cannot be read"}).write(c.w, "")
			return
		}
		body, kind = data, file.MimeType
		if kind == "" {
			kind = "application/octet-stream"
		}
	}
	header.Set("Content-Type", kind)
	for name, value := range response.Headers {
		if validHeader(name, value) && !ownHeaders[http.CanonicalHeaderKey(name)] {
			header.Set(name, value)
		}
	}
	status := response.Status
	if status < 200 || status > 599 {
		status = http.StatusOK
	}
	c.w.WriteHeader(status)
	if c.r.Method != http.MethodHead && status != http.StatusNoContent && status != http.StatusNotModified {
		_, _ = c.w.Write(body)
	}
}

func validHeader(name, value string) bool {
	return name != "" && !strings.ContainsAny(name, " \t\r\n:") && !strings.ContainsAny(value, "\r\n\x00")
}
