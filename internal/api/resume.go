package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/callers"
	"github.com/reprise-engine/reprise/internal/links"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/nodes/web"
	"github.com/reprise-engine/reprise/pkg/queue"
)

var resumeMethods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// resume ends a wait for a webhook with the call.
func (h *handler) resume(w http.ResponseWriter, r *http.Request) {
	execution := engine.ExecutionID(chi.URLParam(r, "execution"))
	sign, added, query := signature(r.URL.Query())
	link, ok := h.Signer.CheckResume(execution, sign)
	if !ok {
		fail(w, http.StatusForbidden, queue.CodeForbidden, "the link is not valid: its signature is missing or wrong")
		return
	}
	if !slices.Contains(resumeMethods, r.Method) {
		allow(w, resumeMethods...)
		return
	}
	if prefetched(r) {
		fail(w, http.StatusServiceUnavailable, queue.CodeUnavailable, "a resume link is not fetched in advance")
		return
	}
	suffix := strings.Trim(chi.URLParam(r, "*"), "/")
	if suffix == "" {
		suffix = added
	}
	if suffix == web.FormSuffix { // what a form takes has been checked by its page
		fail(w, http.StatusConflict, queue.CodeConflict, "a form is sent with its page, not by a call of the resume URL")
		return
	}
	if !utf8.ValidString(suffix) {
		fail(w, http.StatusNotFound, queue.CodeNotFound, "there is nothing at this address")
		return
	}
	item, problem := h.readItem(w, r, h.callURL(r, execution, suffix), query)
	if problem != nil {
		fail(w, problem.status, problem.code, problem.message)
		return
	}
	log := h.Log.With(zap.String("execution_id", string(execution)))
	answer, err := h.end(r, log, queue.ResumeRequest{Execution: execution, Link: &link, Suffix: suffix, Method: r.Method}, item)
	if err != nil {
		h.notResumed(w, err)
		return
	}
	log.Info("wait resumed by its link")
	if !answer.AfterEnd {
		h.respond(w, log, answer.Response, []byte(answer.Response.Body))
		return
	}
	h.respondAfterEnd(w, r, log, execution, answer.Response)
}

// end ends a wait with an item, if the caller proves to be one of those whom it asks for. What proves it
// does not leave this process.
func (h *handler) end(r *http.Request, log *zap.Logger, request queue.ResumeRequest, i *item) (*queue.ResumeAnswer, error) {
	var err error
	if request.Checked, err = h.Backend.Callers(r.Context(), request); err != nil {
		return nil, err
	}
	if wanted := request.Checked; wanted != nil {
		caller, err := callers.Check(r, h.Credentials, wanted.Type, wanted.Credential)
		if err != nil {
			if errors.Is(err, callers.ErrUnknown) {
				log.Warn("calls are refused: their callers cannot be checked", zap.String("credential_type", wanted.Type), zap.Error(err))
			}
			return nil, err
		}
		delete(i.Headers, caller.Hidden)
		i.JWTPayload = caller.Claims
	}
	if request.Data, err = json.Marshal(i); err != nil {
		return nil, fmt.Errorf("write the item of a call: %w", err)
	}
	return h.Backend.Resume(r.Context(), request)
}

// notResumed tells the caller why the wait goes on.
func (h *handler) notResumed(w http.ResponseWriter, err error) {
	var refusal *callers.Refusal
	switch {
	case errors.As(err, &refusal):
		code := queue.CodeForbidden
		if refusal.Status == http.StatusUnauthorized {
			code = queue.CodeUnauthorized
		}
		if refusal.Challenge != "" {
			w.Header().Set("WWW-Authenticate", refusal.Challenge)
		}
		fail(w, refusal.Status, code, refusal.Message)
	case errors.Is(err, callers.ErrUnknown):
		fail(w, http.StatusInternalServerError, queue.CodeInternal, "callers cannot be checked: no authentication data is there")
	default:
		status, p := h.refusal(w, "wait was not resumed", err)
		writeJSON(w, status, p)
	}
}

// prefetched is true when a browser says that nobody has asked for the page yet.
func prefetched(r *http.Request) bool {
	if r.Method != http.MethodGet {
		return false
	}
	for _, name := range []string{"Sec-Purpose", "Purpose", "X-Purpose", "X-Moz"} {
		value := strings.ToLower(r.Header.Get(name))
		if strings.Contains(value, "prefetch") || strings.Contains(value, "preview") {
			return true
		}
	}
	return false
}

// callURL is the address that was called, as the caller knows it, without its
// query.
func (h *handler) callURL(r *http.Request, execution engine.ExecutionID, suffix string) string {
	base := h.Signer.PublicURL()
	if base == "" {
		base = "http://" + r.Host
	}
	u := base + links.ResumePath + string(execution)
	if suffix != "" {
		u += "/" + suffix
	}
	return u
}

// respond answers the call as the node says.
func (h *handler) respond(w http.ResponseWriter, log *zap.Logger, response engine.WebhookResponse, body []byte) {
	status := response.Status
	if status == 0 {
		status = http.StatusOK
	}
	if status < 200 || status > 599 {
		log.Warn("the node's response code is not one; answered with 200", zap.Int("status", status))
		status = http.StatusOK
	}
	header := w.Header()
	// What an execution gives out is not this server's: as a page it gets an origin of its own.
	header.Set("Content-Security-Policy", "sandbox allow-forms allow-popups allow-scripts")
	for name, value := range response.Headers {
		if !ownHeaders[http.CanonicalHeaderKey(name)] {
			header.Set(name, value)
		}
	}
	if header.Get("Content-Type") == "" && len(body) > 0 {
		// Never HTML unless the node says so: the text may hold what somebody sent.
		header.Set("Content-Type", "text/plain; charset=utf-8")
		if json.Valid(body) {
			header.Set("Content-Type", "application/json; charset=utf-8")
		}
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// ownHeaders are the server's business.
var ownHeaders = map[string]bool{
	"Connection": true, "Content-Length": true, "Date": true, "Keep-Alive": true, "Proxy-Connection": true,
	"Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// respondAfterEnd answers the call with what the execution gives out. A caller
// that goes away changes nothing: the wait is resumed.
func (h *handler) respondAfterEnd(w http.ResponseWriter, r *http.Request, log *zap.Logger, id engine.ExecutionID, response engine.WebhookResponse) {
	// No deadline on the context: each question to a coordinator has its own.
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	late := time.AfterFunc(h.MaxWait, cancel)
	defer late.Stop()
	e, err := h.Backend.WaitFinished(ctx, id, true, false)
	switch {
	case ctx.Err() != nil && err != nil:
		writeJSON(w, http.StatusAccepted, queue.Problem{Code: "running",
			Message: fmt.Sprintf("the execution goes on: it has not ended within %v", h.MaxWait)})
		return
	case err != nil:
		status, p := h.refusal(w, "end of a resumed execution was not awaited", err)
		fail(w, status, p.Code, "the execution goes on, but its output is not known: "+p.Message)
		return
	case e.Status != engine.StatusSuccess:
		writeJSON(w, http.StatusInternalServerError, map[string]string{"message": "Error in workflow"})
		return
	}
	item, err := lastItem(e.Data)
	if err != nil {
		log.Error("output of a resumed execution cannot be read", zap.Error(err))
		fail(w, http.StatusInternalServerError, queue.CodeInternal, "the execution's output cannot be read")
		return
	}
	if item == nil {
		writeJSON(w, http.StatusInternalServerError, struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		}{0, "No item to return was found"})
		return
	}
	h.respond(w, log, response, item)
}

// lastItem is the json of the first item that the last node gave out, nil when
// there is none.
func lastItem(data json.RawMessage) (json.RawMessage, error) {
	var d struct {
		ResultData struct {
			LastNode string                     `json:"lastNodeExecuted"`
			RunData  map[string]json.RawMessage `json:"runData"`
		} `json:"resultData"`
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("read run data: %w", err)
	}
	raw := d.ResultData.RunData[d.ResultData.LastNode]
	if raw == nil {
		return nil, nil
	}
	var runs []struct {
		Data struct {
			Main [][]struct {
				JSON json.RawMessage `json:"json"`
			} `json:"main"`
		} `json:"data"`
	}
	if err := json.Unmarshal(raw, &runs); err != nil {
		return nil, fmt.Errorf("read runs of the last node: %w", err)
	}
	if len(runs) == 0 {
		return nil, nil
	}
	for _, items := range runs[len(runs)-1].Data.Main {
		if len(items) > 0 {
			return items[0].JSON, nil
		}
	}
	return nil, nil
}
