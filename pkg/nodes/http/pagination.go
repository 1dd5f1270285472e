package http

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// pagination asks for one page after the other until the service has no more.
// Its parameters speak of the page just read ($response, $pageCount), so they
// are evaluated again for every page.
type pagination struct {
	x    *execution
	item int
	raw  gjson.Result // options.pagination.pagination

	mode         string
	when         string
	statusCodes  []string
	maxPages     int // 0 is no limit of the user's
	pageInterval time.Duration
}

// maxPages ends a pagination whose condition never comes true.
const maxPages = 10_000

// pagination reads the option; nil when it is off.
func (x *execution) pagination(ctx context.Context, item int) (*pagination, error) {
	const at = "options.pagination.pagination"
	raw := gjson.GetBytes(x.call.Node.Parameters, at)
	if !raw.IsObject() || x.call.Node.TypeVersion < 3 {
		return nil, nil
	}
	p := &parameters{ctx: ctx, call: x.call, item: item}
	g := &pagination{
		x: x, item: item, raw: raw,
		mode:         p.text(at+".paginationMode", "updateAParameterInEachRequest"),
		when:         p.text(at+".paginationCompleteWhen", "responseIsEmpty"),
		pageInterval: time.Duration(p.number(at+".requestInterval", 0)) * time.Millisecond,
	}
	if p.flag(at+".limitPagesFetched", false) {
		g.maxPages = int(p.number(at+".maxRequests", 100))
	}
	for _, code := range strings.Split(p.text(at+".statusCodesWhenComplete", ""), ",") {
		if code = strings.TrimSpace(code); code != "" {
			g.statusCodes = append(g.statusCodes, code)
		}
	}
	if p.err != nil || g.mode == "off" {
		return nil, p.err
	}
	return g, nil
}

func (g *pagination) run(ctx context.Context, first *request) (workflow.Items, error) {
	var all workflow.Items
	// $response does not exist before the first answer; $pageCount counts the pages read.
	page := pageScope{response: "{}"}
	for page.count = 0; ; {
		r, err := g.next(ctx, first, page)
		if err != nil {
			return nil, err
		}
		resp, err := g.x.send(ctx, r, g.x.key(g.item, page.count))
		if err != nil {
			return nil, err
		}
		ended := g.endsAtStatus(resp.status)
		o := r.options
		o.neverError = o.neverError || ended
		items, err := resp.items(o, g.x.input[g.item], g.item)
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
		page.count++
		page.response = scopeOf(resp)
		if !ended {
			if ended, err = g.ended(ctx, resp, page); err != nil {
				return nil, err
			}
		}
		switch {
		case ended || g.maxPages > 0 && page.count >= g.maxPages:
			return all, nil
		case page.count >= maxPages:
			return nil, operationError(fmt.Sprintf("the pagination did not end after %d pages; check its condition or limit the pages fetched", maxPages))
		case !wait(ctx, g.pageInterval):
			return nil, ctx.Err()
		}
	}
}

func (g *pagination) endsAtStatus(status int) bool {
	if g.when != "receiveSpecificStatusCodes" {
		return false
	}
	for _, code := range g.statusCodes {
		if code == strconv.Itoa(status) {
			return true
		}
	}
	return false
}

func (g *pagination) ended(ctx context.Context, resp *response, page pageScope) (bool, error) {
	switch g.when {
	case "responseIsEmpty":
		if resp.isFile {
			return resp.empty, nil
		}
		body := strings.TrimSpace(string(resp.body))
		if !gjson.Valid(body) {
			return body == "", nil
		}
		return isEmpty(gjson.Parse(body)), nil
	case "other":
		v, err := g.evaluate(ctx, g.raw.Get("completeExpression"), page)
		return v.Bool(), err
	}
	return false, nil
}

func isEmpty(v gjson.Result) bool {
	empty := true
	if v.IsArray() || v.IsObject() {
		v.ForEach(func(_, _ gjson.Result) bool {
			empty = false
			return false
		})
		return empty
	}
	return v.Type == gjson.Null
}

// next is the request for the page after page.
func (g *pagination) next(ctx context.Context, first *request, page pageScope) (*request, error) {
	r := *first
	if g.mode == "responseContainsNextURL" {
		if page.count == 0 {
			return &r, nil
		}
		next, err := g.evaluate(ctx, g.raw.Get("nextURL"), page)
		if err != nil {
			return nil, err
		}
		if next.Type != gjson.String || next.Str == "" {
			return nil, operationError("the pagination's next URL is empty; end the pagination by its condition when there is no further page")
		}
		target, err := first.target()
		if err != nil {
			return nil, err
		}
		ref, err := target.Parse(next.Str)
		if err != nil {
			return nil, operationError("the pagination's next URL is no URL")
		}
		if ref.Host != target.Host { // a service may not send our key to another one
			return nil, operationError("the pagination's next URL leads to another host: " + ref.Host)
		}
		r.url, r.query = ref.String(), first.secrets.query
		return &r, nil
	}
	r.query, r.headers = r.query.Clone(), r.headers.Clone()
	var failed error
	g.raw.Get("parameters.parameters").ForEach(func(_, entry gjson.Result) bool {
		resolved, err := g.evaluate(ctx, entry, page)
		if err != nil {
			failed = err
			return false
		}
		name, value := resolved.Get("name").String(), valueOf(resolved)
		switch kind := resolved.Get("type").String(); {
		case name == "":
		case kind == "headers":
			r.headers.Set(name, value)
		case kind == "body":
			if r.body.contentType == "application/json" {
				o := jsonobject.Parse(r.body.bytes)
				o.SetPath(name, value)
				r.body.bytes = o.JSON()
			}
		default:
			r.query.Set(name, value)
		}
		return true
	})
	return &r, failed
}

// pageScope is what a page's expressions see.
type pageScope struct {
	count    int
	response string // JSON: body, headers, statusCode, statusMessage
}

func scopeOf(resp *response) string {
	body := strings.TrimSpace(string(resp.body))
	if !gjson.Valid(body) {
		body = jsonobject.Quote(resp.decoded())
	}
	return string(resp.envelope(body))
}

// evaluate resolves a parameter with the page's variables bound.
func (g *pagination) evaluate(ctx context.Context, raw gjson.Result, page pageScope) (gjson.Result, error) {
	if !strings.Contains(raw.Raw, `"=`) {
		return raw, nil
	}
	value, err := g.x.call.Parameters.Resolve(ctx, g.x.call, g.item, json.RawMessage(page.bind(raw)))
	return gjson.ParseBytes(value), err
}

var pageVariable = regexp.MustCompile(`\$(response|pageCount)\b`)

// bind writes the values of the page's variables into the expressions of a
// parameter. The resolver knows the variables of a node's run only, and a
// page's exist for the length of one call; as literals they need no support
// there.
func (page pageScope) bind(raw gjson.Result) string {
	switch {
	case raw.Type == gjson.String && strings.HasPrefix(raw.Str, "="):
		return jsonobject.Quote(pageVariable.ReplaceAllStringFunc(raw.Str, func(name string) string {
			if name == "$pageCount" {
				return strconv.Itoa(page.count)
			}
			return "(" + asLiteral(page.response) + ")"
		}))
	case raw.IsObject():
		var o jsonobject.Object
		raw.ForEach(func(key, value gjson.Result) bool {
			o.Set(key.String(), page.bind(value))
			return true
		})
		return o.String()
	}
	return raw.Raw
}

// asLiteral writes JSON so that it can stand inside {{ }}: braces that would
// open or close a segment are kept apart, in strings they are escaped.
func asLiteral(text string) string {
	var b strings.Builder
	inString := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case inString && c == '\\' && i+1 < len(text):
			b.WriteByte(c)
			i++
			b.WriteByte(text[i])
			continue
		case c == '"':
			inString = !inString
		case inString && c == '{':
			b.WriteString(`\u007b`)
			continue
		case inString && c == '}':
			b.WriteString(`\u007d`)
			continue
		}
		b.WriteByte(c)
		if !inString && (c == '{' || c == '}') {
			b.WriteByte(' ')
		}
	}
	return b.String()
}
