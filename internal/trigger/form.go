package trigger

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/links"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/nodes/web"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// FormWaitingPath is where the further pages of a form are.
const FormWaitingPath = links.FormPath

const typeFormPage = "n8n-nodes-base.form"

// pageWait is how long a page of a form is waited for before the browser is shown that it takes
// a while; it asks again then.
const pageWait = 20 * time.Second

// formHookOf reads a Form Trigger.
func formHookOf(ctx context.Context, e Evaluator, s *source, n *workflow.Node) (*hook, error) {
	p := parametersOf(ctx, e, s.workflow, n, nil)
	path := strings.Trim(p.text("options.path", p.text("path", "")), "/ ")
	if path == "" {
		path = n.WebhookID
	}
	if p.err == nil && path == "" {
		p.err = errors.New("node \"" + n.Name + "\" has neither a path nor a webhookId, which its address is made of")
	}
	return &hook{base: FormPath, path: path, methods: []string{http.MethodGet, http.MethodPost}}, p.err
}

// form shows the first page of a form, or takes what was sent with it.
func (c *call) form() {
	p := parametersOf(c.r.Context(), c.host.Evaluator, c.hook.workflow, c.hook.node, nil)
	if problem := c.admit(p); problem != nil {
		problem.write(c.w, "")
		return
	}
	page, err := c.firstPage(p)
	if err != nil {
		c.broken(err).write(c.w, "")
		return
	}
	if c.r.Method == http.MethodGet {
		for i := range page.Fields { // a link may fill in fields by their names
			if v := c.r.URL.Query().Get(page.Fields[i].Name); v != "" {
				page.Fields[i].Value = v
			}
		}
		showForm(c.w, http.StatusOK, web.Shown{Page: page})
		return
	}
	item, said, problem := c.sentForm(page)
	switch {
	case problem != nil:
		problem.write(c.w, "")
		return
	case said != "":
		showForm(c.w, http.StatusBadRequest, web.Shown{Page: page, Problem: said})
		return
	}
	id, problem := c.begin(workflow.Items{item}, "webhook")
	if problem != nil {
		problem.write(c.w, id)
		return
	}
	more := c.pageNodes()
	switch mode := p.text("responseMode", "onReceived"); {
	case len(more) > 0 && c.host.Signer != nil && c.host.Signer.FormURL(id) != "":
		// The following pages have an address of their own, which survives a reload.
		http.Redirect(c.w, c.r, c.host.Signer.FormURL(id), http.StatusSeeOther)
	case mode == "lastNode" || mode == "responseNode":
		got, problem := c.await(id, queue.Awaited{Nodes: respondNodes(c.hook.workflow)})
		switch {
		case problem != nil:
			showForm(c.w, problem.status, web.Shown{Page: &web.Page{Title: page.Title}, Message: "This takes longer than expected. Your response has been recorded."})
		case got.Response != nil:
			c.send(got.Response, false)
		case got.Status != engine.StatusSuccess:
			showForm(c.w, http.StatusInternalServerError, web.Shown{Page: &web.Page{Title: page.Title}, Message: "Something went wrong. Your response was received but could not be handled."})
		default:
			c.formEnd(p, page)
		}
	default:
		c.formEnd(p, page)
	}
}

// pageNodes are the further pages of a form.
func (c *call) pageNodes() []string {
	var names []string
	for _, n := range c.hook.workflow.Nodes {
		if n.Type == typeFormPage && !n.Disabled {
			names = append(names, n.Name)
		}
	}
	return names
}

func (c *call) firstPage(p *parameters) (*web.Page, error) {
	fields := p.get("formFields.values")
	if p.text("defineForm", "fields") == "json" {
		if fields = p.get("jsonOutput"); fields.Type == gjson.String {
			fields = gjson.Parse(fields.Str)
		}
	}
	title, description, button := p.text("formTitle", ""), p.text("formDescription", ""), p.text("options.buttonLabel", "")
	if p.err != nil {
		return nil, p.err
	}
	return web.ReadPage(title, description, button, fields)
}

// formEnd tells a person that the form was received.
func (c *call) formEnd(p *parameters, page *web.Page) {
	text := p.text("options.respondWithOptions.values.formSubmittedText", p.text("options.formSubmittedText", "Your response has been recorded"))
	if p.text("options.respondWithOptions.values.respondWith", "text") == "redirect" {
		if to := p.text("options.respondWithOptions.values.redirectUrl", ""); to != "" {
			http.Redirect(c.w, c.r, to, http.StatusSeeOther)
			return
		}
	}
	showForm(c.w, http.StatusOK, web.Shown{Page: &web.Page{Title: page.Title}, Message: text})
}

func showForm(w http.ResponseWriter, status int, s web.Shown) {
	writePage(w, status, web.Template(), s, "")
}

// sentForm makes an item of what was sent; said is what the person must mend.
func (c *call) sentForm(page *web.Page) (item workflow.Item, said string, p *problem) {
	values, files, p := c.readFields()
	if p != nil {
		return item, "", p
	}
	zone := time.UTC
	if name := c.zone(); name != "" {
		if z, err := time.LoadLocation(name); err == nil {
			zone = z
		}
	}
	item, said = page.Item(values, files, c.host.Now().In(zone))
	return item, said, nil
}

func (c *call) zone() string {
	if c.hook == nil {
		return ""
	}
	return c.hook.workflow.Settings.Timezone
}

// readFields reads a form by the names of its inputs.
func (c *call) readFields() (map[string][]string, []web.Upload, *problem) {
	body, p := c.readContent()
	if p != nil {
		return nil, nil, p
	}
	values := map[string][]string{}
	if body.media == "application/x-www-form-urlencoded" {
		values, _ = url.ParseQuery(string(body.raw)) // what can be read counts
	}
	for name, value := range gjson.ParseBytes(body.body).Map() {
		if body.media != "multipart/form-data" {
			break
		}
		if value.IsArray() {
			for _, one := range value.Array() {
				values[name] = append(values[name], one.String())
			}
			continue
		}
		values[name] = []string{value.String()}
	}
	var files []web.Upload
	for _, f := range body.files {
		file, p := c.keepFile(f.name, f.media, f.data)
		if p != nil {
			return nil, nil, p
		}
		files = append(files, web.Upload{Input: f.field, File: file, Bytes: len(f.data)})
	}
	return values, files, nil
}

// formWaiting shows what a form that was begun has next: a page, its end, or that it takes
// a while; and takes what was sent with a page.
func (h *Host) formWaiting(w http.ResponseWriter, r *http.Request) {
	id := engine.ExecutionID(strings.Trim(strings.TrimPrefix(r.URL.Path, FormWaitingPath), "/"))
	if h.Signer == nil || !h.Signer.CheckForm(id, r.URL.Query().Get(links.Parameter)) {
		(&problem{status: http.StatusForbidden, message: "the link is not valid: its signature is missing or wrong"}).write(w, "")
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		w.Header().Set("Allow", "GET, POST")
		(&problem{status: http.StatusMethodNotAllowed, message: "this address takes GET and POST"}).write(w, "")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), pageWait)
	defer cancel()
	c := &call{host: h, id: id, hook: &hook{source: &source{workflow: &workflow.Workflow{}}}, w: w, r: r}
	got, err := h.Backend.WaitResponse(ctx, id, queue.Awaited{Waiting: true})
	wait, page := formOf(got)
	switch {
	case err != nil && ctx.Err() == nil:
		h.log.Warn("form is not known", zap.String("execution_id", string(id)), zap.Error(err))
		(&problem{status: queue.ProblemOf(err).Status(), message: "the form cannot be shown now"}).write(w, id)
	case err == nil && got.Status.Finished():
		c.formOver(got)
	case page == nil:
		showForm(w, http.StatusOK, web.Shown{Page: &web.Page{Title: "Please wait"}, Message: "Your response is being handled …", Refresh: 2})
	case r.Method == http.MethodGet:
		showForm(w, http.StatusOK, web.Shown{Page: page, Token: wait.Token})
	default:
		c.sendPage(id, wait, page)
	}
}

// formOf is the page that an execution waits with; nil when there is none.
func formOf(got *queue.ResponseAnswer) (*queue.Waiting, *web.Page) {
	if got == nil {
		return nil, nil
	}
	for i := range got.Waiting {
		var page web.Page
		if len(got.Waiting[i].Form) > 0 && json.Unmarshal(got.Waiting[i].Form, &page) == nil {
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
		showForm(c.w, http.StatusOK, web.Shown{Page: &web.Page{Title: "Form Submitted"}, Message: "Your response has been recorded"})
	default:
		showForm(c.w, http.StatusInternalServerError, web.Shown{Page: &web.Page{Title: "Problem"}, Message: "Something went wrong. Your response was received but could not be handled."})
	}
}

// sendPage ends the wait of a page with what was sent. A page that was sent before leads to the
// one that is next.
func (c *call) sendPage(id engine.ExecutionID, wait *queue.Waiting, page *web.Page) {
	values, files, p := c.readFields()
	if p != nil {
		p.write(c.w, id)
		return
	}
	again := c.host.Signer.FormURL(id)
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
		(&problem{status: http.StatusInternalServerError, message: "the form cannot be taken"}).write(c.w, id)
		return
	}
	_, err = c.host.Backend.Resume(c.r.Context(), queue.ResumeRequest{
		Execution: id, Link: &number, Suffix: web.FormSuffix, Method: http.MethodPost, Data: data,
	})
	if err != nil && queue.ProblemOf(err).Code != queue.CodeConflict { // a conflict: it was sent twice
		c.host.log.Warn("page of a form was not taken", zap.String("execution_id", string(id)), zap.Error(err))
		(&problem{status: http.StatusServiceUnavailable, message: "the form cannot be taken now: try again"}).write(c.w, id)
		return
	}
	http.Redirect(c.w, c.r, again, http.StatusSeeOther)
}
