package trigger

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/internal/links"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/nodes/web"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// FormWaitingPath is where the further pages of a form are.
const FormWaitingPath = links.FormPath

const typeFormPage = "n8n-nodes-base.form"

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
		c.prefill(page)
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
		http.Redirect(c.w, c.r, c.nextPage(id), http.StatusSeeOther)
	default:
		c.formEnd(id, page, c.endOf(p, mode), queue.Awaited{Nodes: respondNodes(c.hook.workflow)})
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
	page, err := web.ReadPage(title, description, button, fields)
	if err == nil {
		page.Zone = c.hook.workflow.Settings.Timezone
	}
	return page, err
}

// prefill gives fields the values that the address has for them by their names.
func (c *call) prefill(page *web.Page) {
	for i := range page.Fields {
		if v := c.r.URL.Query().Get(page.Fields[i].Name); v != "" {
			page.Fields[i].Value = v
		}
	}
}

// nextPage is where the person goes on with the form; what the address says about
// fields goes along.
func (c *call) nextPage(id engine.ExecutionID) string {
	next, rest := c.host.Signer.FormURL(id), c.r.URL.Query()
	if rest.Del(links.Parameter); next != "" && len(rest) > 0 {
		next += "&" + rest.Encode()
	}
	return next
}

// endOf is what a person is shown who sent a form that has no further pages.
func (c *call) endOf(p *parameters, mode string) *web.After {
	return &web.After{
		Mode: mode, With: p.text("options.respondWithOptions.values.respondWith", "text"),
		Text:     p.text("options.respondWithOptions.values.formSubmittedText", p.text("options.formSubmittedText", web.DefaultEnd)),
		Redirect: p.text("options.respondWithOptions.values.redirectUrl", ""),
	}
}

// formEnd tells a person that the form was received, or what became of it.
func (c *call) formEnd(id engine.ExecutionID, page *web.Page, end *web.After, awaited queue.Awaited) {
	if end.Mode == web.LastNode || end.Mode == web.ResponseNode {
		got, problem := c.await(id, awaited)
		switch {
		case problem != nil:
			say(c.w, problem.status, page.Title, "This takes longer than expected. Your response has been recorded.")
			return
		case got.Response != nil:
			c.send(got.Response, false)
			return
		case got.Status != engine.StatusSuccess:
			say(c.w, http.StatusInternalServerError, page.Title, notHandled)
			return
		}
	}
	if end.With == "redirect" && end.Redirect != "" {
		http.Redirect(c.w, c.r, end.Redirect, http.StatusSeeOther)
		return
	}
	say(c.w, http.StatusOK, page.Title, end.Text)
}

const notHandled = "Something went wrong. Your response was received but could not be handled."

// say shows a page without a form.
func say(w http.ResponseWriter, status int, title, text string) {
	showForm(w, status, web.Shown{Page: &web.Page{Title: title}, Message: text})
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
	item, said = page.Item(values, files, c.host.Now())
	return item, said, nil
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
