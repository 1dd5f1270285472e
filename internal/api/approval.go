package api

import (
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/links"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// approval shows a question (GET) and decides it (POST).
func (h *handler) approval(w http.ResponseWriter, r *http.Request) {
	securePage(w.Header())
	v := view{w: w, json: wantsJSON(r), choice: r.URL.Query().Get("choice"), now: h.Now()}
	token := chi.URLParam(r, "token")
	bind, ok := h.Signer.CheckApproval(token, r.URL.Query().Get(links.Parameter))
	if !ok {
		v.refuse(http.StatusForbidden, queue.CodeForbidden, "This link is not valid",
			"Its signature is missing or wrong. Open the link exactly as you were sent it.")
		return
	}
	switch r.Method {
	case http.MethodGet:
		if a := h.question(v, r, token, bind); a != nil {
			v.ask(a)
		}
	case http.MethodPost:
		h.decide(v, r, token, bind)
	case http.MethodHead:
		w.Header().Set("Content-Type", pageType)
		w.WriteHeader(http.StatusOK)
	default:
		allow(w, http.MethodGet, http.MethodHead, http.MethodPost)
	}
}

// question returns the question of a link while it is open. Else it has
// answered, and returns nil.
func (h *handler) question(v view, r *http.Request, token, bind string) *queue.Approval {
	a, err := h.Backend.Approval(r.Context(), token)
	if err != nil {
		h.refuse(v, r, token, err)
		return nil
	}
	if a.Bind != bind {
		v.refuse(http.StatusForbidden, queue.CodeForbidden, "This link is not valid",
			"It was made for another question than the one that is asked now.")
		return nil
	}
	if a.Outcome == "" && a.Expires > 0 && h.Now().UnixMilli() >= a.Expires {
		a.Outcome = engine.OutcomeExpired // its timer is about to say so
	}
	if a.Outcome != "" {
		v.settled(a)
		return nil
	}
	return a
}

// decide takes a decision. The coordinators see to it that it counts once.
func (h *handler) decide(v view, r *http.Request, token, bind string) {
	a := h.question(v, r, token, bind)
	if a == nil {
		return
	}
	decision, problem := readDecision(v.w, r, a.FreeText)
	if problem != nil {
		v.refuse(problem.status, problem.code, "Nothing was decided", problem.message)
		return
	}
	decision.By, decision.At = "link", h.Now().UnixMilli()
	err := h.Backend.Decide(r.Context(), queue.DecideRequest{ID: token, Bind: bind, Decision: *decision})
	if err != nil {
		h.refuse(v, r, token, err)
		return
	}
	a.Outcome, a.Decision = engine.OutcomeDenied, decision
	if decision.Approved {
		a.Outcome = engine.OutcomeApproved
	}
	h.Log.Info("question decided by its link", zap.String("execution_id", string(a.Execution)),
		zap.String("node", a.Node), zap.String("outcome", string(a.Outcome)))
	v.recorded(a)
}

// refuse answers with a backend's error.
func (h *handler) refuse(v view, r *http.Request, token string, err error) {
	status, p := h.refusal(v.w, "question was not reached", err)
	switch status {
	case http.StatusNotFound:
		h.notAsked(v, r, token)
	case http.StatusConflict, http.StatusGone:
		// Somebody was faster; say what was decided.
		if a, err := h.Backend.Approval(r.Context(), token); err == nil && a.Outcome != "" {
			v.settled(a)
			return
		}
		v.refuse(status, p.Code, "This question is no longer open", p.Message)
	case http.StatusForbidden:
		v.refuse(status, p.Code, "This link is not valid", p.Message)
	case http.StatusServiceUnavailable, http.StatusInsufficientStorage:
		v.refuse(status, p.Code, "Please try again",
			"The question cannot be reached now. If you have decided it, decide again in a moment: a decision counts once.")
	default:
		v.refuse(status, p.Code, "Something went wrong", p.Message)
	}
}

// notAsked answers for a question that is not known though the link is genuine. A
// node may send its link a moment before it asks; such an early answer must not
// be lost, so it is to be tried again.
func (h *handler) notAsked(v view, r *http.Request, token string) {
	execution, _, _ := engine.SplitToken(token)
	e, err := h.Backend.Get(r.Context(), execution, false)
	switch {
	case err != nil && queue.ProblemOf(err).Code == queue.CodeNotFound:
		v.refuse(http.StatusNotFound, queue.CodeNotFound, "There is no such question", "Its execution is not known, or was over long ago.")
	case err != nil:
		status, p := h.refusal(v.w, "execution of a question was not reached", err)
		v.refuse(status, p.Code, "Please try again", p.Message)
	case e.Status.Finished():
		v.refuse(http.StatusGone, queue.CodeGone, "This question is no longer open", "Its execution is over.")
	default:
		v.w.Header().Set("Retry-After", strconv.Itoa(retrySoon))
		v.refuse(http.StatusServiceUnavailable, queue.CodeUnavailable, "This question is not open",
			"Nothing was decided. If you were sent the link just now, the question is not asked yet; try again in a moment.")
	}
}

// readDecision reads the body of a POST: a form or JSON with decision, which is
// approve or deny and nothing else, and feedback (or text). The query has no say.
func readDecision(w http.ResponseWriter, r *http.Request, freeText bool) (*engine.Decision, *refused) {
	bad := func(message string) (*engine.Decision, *refused) {
		return nil, &refused{http.StatusBadRequest, queue.CodeBadRequest, message}
	}
	var in struct{ Decision, Feedback, Text string }
	contentType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch contentType {
	case "application/json":
		data, problem := readBody(w, r, maxDecision)
		if problem != nil {
			return nil, problem
		}
		if err := json.Unmarshal(data, &in); err != nil {
			return bad(`the body is not of the form {"decision": "approve" or "deny", "feedback": "…"}`)
		}
	default:
		defer limitReading(w)()
		r.Body = http.MaxBytesReader(w, r.Body, maxDecision)
		var err error
		if contentType == "multipart/form-data" {
			err = r.ParseMultipartForm(maxDecision) // so that it stays in memory
		} else {
			err = r.ParseForm()
		}
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			return nil, &refused{http.StatusRequestEntityTooLarge, queue.CodeTooLarge, "the form is too large"}
		}
		if err != nil {
			return bad("the form cannot be read")
		}
		if len(r.PostForm["decision"]) > 1 {
			return bad("the form holds more than one decision")
		}
		in.Decision, in.Feedback, in.Text = r.PostForm.Get("decision"), r.PostForm.Get("feedback"), r.PostForm.Get("text")
	}
	d := &engine.Decision{Approved: in.Decision == "approve", Feedback: in.Feedback}
	if d.Feedback == "" {
		d.Feedback = in.Text
	}
	d.Feedback = strings.ReplaceAll(d.Feedback, "\r\n", "\n") // as forms send it
	switch {
	case in.Decision != "approve" && in.Decision != "deny":
		return bad("the field decision must be approve or deny")
	case freeText && d.Approved && strings.TrimSpace(d.Feedback) == "":
		return bad("the question asks for a text, in the field text")
	}
	return d, nil
}

// wantsJSON is true for programs: what is sent is JSON, or JSON is preferred.
func wantsJSON(r *http.Request) bool {
	contentType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if contentType == "application/json" {
		return true
	}
	accepted := func(types ...string) float64 {
		best := 0.0
		for _, part := range strings.Split(strings.Join(r.Header.Values("Accept"), ","), ",") {
			name, parameters, err := mime.ParseMediaType(strings.TrimSpace(part))
			if err != nil {
				continue
			}
			quality, err := strconv.ParseFloat(parameters["q"], 64)
			if err != nil {
				quality = 1
			}
			for _, t := range types {
				if name == t {
					best = max(best, quality)
				}
			}
		}
		return best
	}
	return accepted("application/json") > accepted("text/html", "application/xhtml+xml")
}
