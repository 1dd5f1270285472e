package trigger

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/links"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/nodes/web"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// pageWait is how long a page of a form is waited for before the browser is shown that it takes
// a while; it asks again then.
const pageWait = 20 * time.Second

// formWaiting shows the forms that an execution waits with, and takes what was sent with
// them. There are two kinds of addresses: the person who began the execution with a form goes on at
// one, page after page, and the form of a Wait node has a link, which is good for that wait alone.
func (h *Host) formWaiting(w http.ResponseWriter, r *http.Request) {
	path, signature := strings.TrimPrefix(r.URL.Path, FormWaitingPath), r.URL.Query().Get(links.Parameter)
	// A suffix of the node's own changes nothing: the link says which wait it is. Workflows write it
	// behind the link, so it comes with the signature.
	subject, _, _ := strings.Cut(path, "/")
	signature, _, _ = strings.Cut(signature, "/")
	id := engine.ExecutionID(subject)
	var link *int
	ok := false
	if h.Signer != nil {
		link, ok = h.Signer.CheckForm(id, signature)
	}
	switch {
	case !ok:
		say(w, http.StatusForbidden, "This link is not valid", "Its signature is missing or wrong. Please open the link as you were given it.")
		return
	case r.Method != http.MethodGet && r.Method != http.MethodPost:
		w.Header().Set("Allow", "GET, POST")
		(&problem{status: http.StatusMethodNotAllowed, message: "this address takes GET and POST"}).write(w, "")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), pageWait)
	defer cancel()
	c := &call{host: h, id: id, hook: &hook{source: &source{workflow: &workflow.Workflow{}}}, w: w, r: r}
	got, err := h.Backend.WaitResponse(ctx, id, queue.Awaited{Waiting: true, Link: link})
	wait, page := formOf(got, link != nil)
	if page != nil && wait.Callers != nil {
		if p := c.check(wait.Callers.Type, wait.Callers.Credential); p != nil {
			p.write(w, id)
			return
		}
	}
	switch {
	case err != nil && ctx.Err() == nil:
		c.notShown(err)
	case err == nil && link != nil && page == nil && (got.Over || got.Status.Finished()):
		say(w, http.StatusGone, "This form is closed", "It was submitted before, or its time is up. Nothing was submitted now.")
	case err == nil && got.Status.Finished():
		c.formOver(got)
	case page == nil:
		showForm(w, http.StatusOK, web.Shown{Page: &web.Page{Title: "Please wait"}, Message: "The form is not ready yet, or what was sent is being handled …", Refresh: 2})
	case r.Method == http.MethodGet:
		c.prefill(page)
		showForm(w, http.StatusOK, web.Shown{Page: page, Token: wait.Token})
	default:
		c.sendPage(wait, page)
	}
}

// notShown says that it is not known what the execution waits for.
func (c *call) notShown(err error) {
	p := queue.ProblemOf(err)
	if p.Code == queue.CodeNotFound {
		say(c.w, http.StatusNotFound, "This form is not there any more", "What it belonged to is over.")
		return
	}
	c.host.log.Warn("form is not known", zap.String("execution_id", string(c.id)), zap.Error(err))
	say(c.w, p.Status(), "The form cannot be shown now", "Please try again in a moment.")
}

// formOf is the page that an execution waits with; nil when there is none. linked chooses
// between those with a link of their own and those of the form that began the execution.
func formOf(got *queue.ResponseAnswer, linked bool) (*queue.Waiting, *web.Page) {
	if got == nil {
		return nil, nil
	}
	for i := range got.Waiting {
		var page web.Page
		if len(got.Waiting[i].Form) > 0 && json.Unmarshal(got.Waiting[i].Form, &page) == nil && (page.After != nil) == linked {
			return &got.Waiting[i], &page
		}
	}
	return nil, nil
}

func (c *call) formOver(got *queue.ResponseAnswer) {
	switch {
	case got.Response != nil:
		c.send(got.Response, false)
	case got.Status == engine.StatusSuccess:
		say(c.w, http.StatusOK, "Form Submitted", web.DefaultEnd)
	default:
		say(c.w, http.StatusInternalServerError, "Problem", notHandled)
	}
}

// sendPage ends the wait of a page with what was sent. A page that was sent before leads to
// what is next.
func (c *call) sendPage(wait *queue.Waiting, page *web.Page) {
	values, files, p := c.readFields()
	if p != nil {
		say(c.w, p.status, "The form was not taken", p.message)
		return
	}
	again := c.host.Signer.PublicURL() + c.r.URL.RequestURI()
	if token := values["token"]; len(token) != 1 || token[0] != wait.Token {
		http.Redirect(c.w, c.r, again, http.StatusSeeOther)
		return
	}
	item, said := page.Item(values, files, c.host.Now())
	if said != "" {
		showForm(c.w, http.StatusBadRequest, web.Shown{Page: page, Token: wait.Token, Problem: said})
		return
	}
	data, err := json.Marshal(item)
	_, number, ok := engine.SplitToken(wait.Token)
	if err != nil || !ok {
		say(c.w, http.StatusInternalServerError, "The form was not taken", "Something is wrong here.")
		return
	}
	answer, err := c.host.Backend.Resume(c.r.Context(), queue.ResumeRequest{
		Execution: c.id, Link: &number, Suffix: web.FormSuffix, Method: http.MethodPost, Checked: wait.Callers, Data: data,
	})
	switch {
	case err != nil && queue.ProblemOf(err).Code != queue.CodeConflict:
		c.host.log.Warn("page of a form was not taken", zap.String("execution_id", string(c.id)), zap.Error(err))
		say(c.w, http.StatusServiceUnavailable, "The form cannot be taken now", "Please go back and try again.")
	case err != nil || page.After == nil: // a conflict: it was sent twice
		http.Redirect(c.w, c.r, again, http.StatusSeeOther)
	default:
		c.formEnd(c.id, page, page.After, queue.Awaited{Any: page.After.Mode == web.ResponseNode, From: answer.Run + 1})
	}
}
