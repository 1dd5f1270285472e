package trigger_test

import (
	"html"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

const wait = "n8n-nodes-base.wait"

// begin calls a webhook that answers with the links of its execution.
func (l *lab) begin(t *testing.T, path string) (id engine.ExecutionID, form, call string) {
	t.Helper()
	status, header, body := l.do(t, request(t, "GET", l.PublicURL+"/webhook/"+path, ""))
	require.Equal(t, 200, status, body)
	return engine.ExecutionID(header.Get("X-Reprise-Execution")), gjson.Get(body, "form").Str, gjson.Get(body, "call").Str
}

// page opens a form that is waited with and returns the token in it.
func (l *lab) page(t *testing.T, address string) (token, page string) {
	t.Helper()
	require.Eventually(t, func() bool {
		status, _, body := l.do(t, request(t, "GET", address, ""))
		require.Equal(t, 200, status, body)
		found := tokenInput.FindStringSubmatch(body)
		if found != nil {
			token, page = html.UnescapeString(found[1]), body
		}
		return found != nil
	}, within, 20*time.Millisecond, "no form is shown")
	return token, page
}

// linked is a workflow that answers with its links and goes on.
func linked(path string, nodes ...object) []byte {
	return flow(path, append([]object{
		node("Start", webhook, 2, object{"path": path, "responseMode": "responseNode"}),
		node("Links", respond, 1.1, object{"respondWith": "json", "responseBody": `={{ JSON.stringify({ form: $execution.resumeFormUrl, call: $execution.resumeUrl }) }}`}),
	}, nodes...)...)
}

func TestWaitForForm(t *testing.T) {
	l := start(t)
	fields := []object{{"fieldLabel": "Name", "requiredField": true}, {"fieldLabel": "Age", "fieldType": "number"}, {"fieldType": "hiddenField", "fieldName": "from", "fieldValue": "={{ $workflow.name }}"},
		{"fieldLabel": "Proof", "fieldType": "file", "multipleFiles": false}}
	l.activate(t, linked("ask",
		node("Ask", wait, 1.1, object{"resume": "form", "formTitle": "Who?", "formFields": object{"values": fields},
			"options": object{"buttonLabel": "Go", "webhookSuffix": "extra", "respondWithOptions": object{"values": object{"formSubmittedText": "=Thanks to {{ $workflow.name }}"}}}}),
		node("Read", code, 2, object{"jsCode": "return [{json: {got: $input.first().json}}]"})))
	id, form, call := l.begin(t, "ask")
	require.Contains(t, form, "/form-waiting/"+string(id))

	_, page := l.page(t, form+"&Name=Ben")
	require.Contains(t, page, "Who?")
	require.Contains(t, page, `value="Ben"`, "a link may fill in fields")
	token, _ := l.page(t, form+"/extra") // as workflows write the suffix; and a reload changes nothing
	for name, forged := range map[string]string{
		"altered": strings.Replace(form, "signature=", "signature=1", 1), "none": l.PublicURL + "/form-waiting/" + string(id),
		"of the resume URL": strings.Replace(call, "webhook-waiting", "form-waiting", 1),
	} {
		status, header, body := l.do(t, request(t, "POST", forged, "token="+token+"&field-0=x", "Content-Type", "application/x-www-form-urlencoded"))
		require.Equal(t, 403, status, name)
		require.Contains(t, body, "This link is not valid", name)
		require.Equal(t, "text/html; charset=utf-8", header.Get("Content-Type"))
	}
	for _, address := range []string{call, strings.Replace(call, "?", "/form-page?", 1), call + "/form-page", strings.Replace(form, "form-waiting", "webhook-waiting", 1)} {
		status, _, body := l.do(t, request(t, "POST", address, `{"json":{"Name":"x"}}`, "Content-Type", "application/json"))
		require.Contains(t, []int{403, 409}, status, "%s: %s", address, body)
	}
	status, _, page := l.send(t, form, map[string][]string{"token": {token}, "field-1": {"3"}}, nil)
	require.Equal(t, 400, status)
	require.Contains(t, page, "must be filled in")
	status, header, _ := l.send(t, form, map[string][]string{"token": {"another"}, "field-0": {"Ann"}}, nil)
	require.Equal(t, 303, status)
	require.Equal(t, form, header.Get("Location"))

	// Sent by several at once, it is taken once.
	var each sync.WaitGroup
	var mu sync.Mutex
	answers := map[string]int{}
	for range 5 {
		each.Go(func() {
			status, _, page := l.send(t, form, map[string][]string{"token": {token}, "field-0": {"Ann"}, "field-1": {"41.5"}, "field-2": {"forged"}}, map[string]string{"field-3": "text"})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case status == 200 && strings.Contains(page, "Thanks to The ask"):
				answers["taken"]++
			case status == 303, status == 410:
				answers["not"]++
			default:
				answers[page]++
			}
		})
	}
	each.Wait()
	require.Equal(t, map[string]int{"taken": 1, "not": 4}, answers)
	x, err := l.Conn.WaitFinished(t.Context(), id, true, false)
	require.NoError(t, err)
	require.Equal(t, engine.StatusSuccess, x.Status)
	runs := gjson.GetBytes(x.Data, "resultData.runData")
	require.Len(t, runs.Get("Ask").Array(), 1)
	require.Len(t, runs.Get("Read").Array(), 1)
	got := runs.Get("Read.0.data.main.0.0.json.got")
	require.Equal(t, "Ann", got.Get("Name").Str)
	require.Equal(t, 41.5, got.Get("Age").Num)
	require.Equal(t, "The ask", got.Get("from").Str, "a hidden field is not the person's to set")
	require.Equal(t, "production", got.Get("formMode").Str)
	require.True(t, got.Get("submittedAt").Exists())
	require.Equal(t, "dGV4dA==", runs.Get("Ask.0.data.main.0.0.binary.Proof.data").Str)

	for _, method := range []string{"GET", "POST"} {
		status, _, page = l.do(t, request(t, method, form, "token="+token+"&field-0=Ann", "Content-Type", "application/x-www-form-urlencoded"))
		require.Equal(t, 410, status)
		require.Contains(t, page, "It was submitted before", "%s after the end", method)
	}
}

// Waits that ask for callers, whose links alone are not enough; with a coordinator of its own for the credentials.
func TestWaitsForCallers(t *testing.T) {
	l := start(t)
	file := filepath.Join(t.TempDir(), "callers.json")
	require.NoError(t, os.WriteFile(file, []byte(`[
		{"id":"b","name":"basic","type":"httpBasicAuth","data":{"user":"ann","password":"pass-word-1"}},
		{"id":"h","name":"header","type":"httpHeaderAuth","data":{"name":"X-Key","value":"key-value-1"}}]`), 0o600))
	addr := freeAddr(t)
	p, err := service.StartCoordinator(t.Context(), service.Coordinator{
		NATSURL: l.NATSURL, RedisURL: l.RedisURL, HTTPAddr: addr, WebhookCredentialsFile: file,
	}, zap.NewNop())
	require.NoError(t, err)
	t.Cleanup(func() { p.Stop(t.Context()) })
	// A link leads to the coordinator that made it, whichever that is, and works at both.
	at := func(host, link string) string {
		u, err := url.Parse(link)
		require.NoError(t, err)
		u.Host = host
		return u.String()
	}
	here := func(link string) string { return at(addr, link) }
	elsewhere := func(link string) string { return at(strings.TrimPrefix(l.PublicURL, "http://"), link) }
	asking := func(resume, authentication, kind, credential string) object {
		n := node("Ask", wait, 1.1, object{"resume": resume, "httpMethod": "POST", "incomingAuthentication": authentication,
			"formTitle": "Who?", "formFields": object{"values": []object{{"fieldLabel": "Name"}}}})
		n["credentials"] = object{kind: object{"id": credential, "name": "c"}}
		return n
	}
	begin := func(path string, n object) (id engine.ExecutionID, form, call string) {
		l.activate(t, linked(path, n))
		id, form, call = l.begin(t, path)
		require.Eventually(t, func() bool {
			x, err := l.Conn.Get(t.Context(), id, false)
			require.NoError(t, err)
			return len(x.Waiting) == 1
		}, within, 20*time.Millisecond)
		return id, form, call
	}
	got := func(id engine.ExecutionID) gjson.Result {
		x, err := l.Conn.WaitFinished(t.Context(), id, true, false)
		require.NoError(t, err)
		require.Equal(t, engine.StatusSuccess, x.Status)
		require.NotContains(t, string(x.Data), "YW5uOnBhc3Mt", "the password is no part of the item")
		require.NotContains(t, string(x.Data), "key-value-1")
		return gjson.GetBytes(x.Data, "resultData.runData.Ask.0.data.main.0.0.json")
	}

	t.Run("call with a password", func(t *testing.T) {
		id, _, call := begin("basic", asking("webhook", "basicAuth", "httpBasicAuth", "b"))
		status, header, _ := l.do(t, request(t, "POST", here(call), ""))
		require.Equal(t, 401, status)
		require.Contains(t, header.Get("WWW-Authenticate"), "Basic")
		r := request(t, "POST", here(call), `{"n":1}`, "Content-Type", "application/json")
		r.SetBasicAuth("ann", "wrong")
		status, _, _ = l.do(t, r)
		require.Equal(t, 403, status)
		r = request(t, "POST", elsewhere(call), "")
		r.SetBasicAuth("ann", "pass-word-1")
		status, _, _ = l.do(t, r)
		require.Equal(t, 500, status, "a coordinator without the credential lets nobody in")
		r = request(t, "POST", here(call), `{"n":1}`, "Content-Type", "application/json")
		r.SetBasicAuth("ann", "pass-word-1")
		status, _, body := l.do(t, r)
		require.Equal(t, 200, status, body)
		require.Equal(t, 1.0, got(id).Get("body.n").Num)
	})
	t.Run("call with a header", func(t *testing.T) {
		id, _, call := begin("header", asking("webhook", "headerAuth", "httpHeaderAuth", "h"))
		status, _, _ := l.do(t, request(t, "POST", here(call), "", "X-Key", "key-value-2"))
		require.Equal(t, 403, status)
		status, _, body := l.do(t, request(t, "POST", here(call), "", "X-Key", "key-value-1", "X-Other", "stays"))
		require.Equal(t, 200, status, body)
		require.Equal(t, "stays", got(id).Get("headers.x-other").Str)
	})
	t.Run("form", func(t *testing.T) {
		id, form, _ := begin("form", asking("form", "basicAuth", "httpBasicAuth", "b"))
		for _, method := range []string{"GET", "POST"} {
			status, header, body := l.do(t, request(t, method, here(form), ""))
			require.Equal(t, 401, status)
			require.Contains(t, header.Get("WWW-Authenticate"), "Basic")
			require.NotContains(t, body, "Who?")
		}
		status, _, _ := l.do(t, request(t, "GET", elsewhere(form), ""))
		require.Equal(t, 500, status, "a coordinator without the credential shows nothing")
		r := request(t, "GET", here(form), "")
		r.SetBasicAuth("ann", "pass-word-1")
		status, _, page := l.do(t, r)
		require.Equal(t, 200, status)
		token := html.UnescapeString(tokenInput.FindStringSubmatch(page)[1])
		sent := func(password string) int {
			r := request(t, "POST", here(form), url.Values{"token": {token}, "field-0": {"Ann"}}.Encode(), "Content-Type", "application/x-www-form-urlencoded")
			r.SetBasicAuth("ann", password)
			status, _, _ := l.do(t, r)
			return status
		}
		require.Equal(t, 403, sent("wrong"))
		require.Equal(t, 200, sent("pass-word-1"))
		require.Equal(t, "Ann", got(id).Get("Name").Str)
	})
}

// What the person is shown who sends the form.
func TestAnswersToForms(t *testing.T) {
	l := start(t)
	form := func(mode string, options object) object {
		return node("Ask", wait, 1.1, object{"resume": "form", "formTitle": "Ask", "responseMode": mode, "formFields": object{"values": []object{{"fieldLabel": "Name"}}}, "options": options})
	}
	redirect := object{"respondWithOptions": object{"values": object{"respondWith": "redirect", "redirectUrl": "https://example.com/thanks"}}}
	for name, row := range map[string]struct {
		nodes    []object
		status   int
		location string
		page     string
	}{
		"received": {nodes: []object{form("onReceived", object{})}, status: 200, page: "Your response has been recorded"},
		"redirect": {nodes: []object{form("onReceived", redirect)}, status: 303, location: "https://example.com/thanks"},
		"last":     {nodes: []object{form("lastNode", object{}), node("Then", noOp, 1, object{})}, status: 200, page: "Your response has been recorded"},
		"failed":   {nodes: []object{form("lastNode", object{}), node("Then", code, 2, object{"jsCode": "throw new Error('secret')"})}, status: 500, page: "could not be handled"},
		"node": {nodes: []object{form("responseNode", object{}), node("Then", respond, 1.1, object{"respondWith": "text", "responseBody": "=Bye {{ $json.Name }}"}), node("More", noOp, 1, object{})},
			status: 200, page: "Bye Ann"},
	} {
		t.Run(name, func(t *testing.T) {
			l.activate(t, linked(name, row.nodes...))
			_, address, _ := l.begin(t, name)
			token, _ := l.page(t, address)
			status, header, page := l.send(t, address, map[string][]string{"token": {token}, "field-0": {"Ann"}}, nil)
			require.Equal(t, row.status, status, page)
			require.Equal(t, row.location, header.Get("Location"))
			require.Contains(t, page, row.page)
			require.NotContains(t, page, "secret")
		})
	}
}

// A link opens the form of one wait, and of no other; when its time is up, it is closed.
func TestLinksOfForms(t *testing.T) {
	l := start(t)
	ask := func(name string, more object) object {
		p := object{"resume": "form", "formTitle": name, "formFields": object{"values": []object{{"fieldLabel": "Name"}}}}
		for k, v := range more {
			p[k] = v
		}
		return node(name, wait, 1.1, p)
	}
	l.activate(t, linked("limited", ask("Short", object{"limitWaitTime": true, "resumeAmount": 0.5, "resumeUnit": "seconds"}), ask("Long", object{})))
	id, form, _ := l.begin(t, "limited")
	var x *queue.Execution
	require.Eventually(t, func() bool {
		var err error
		x, err = l.Conn.Get(t.Context(), id, true)
		require.NoError(t, err)
		return len(x.Waiting) == 1 && x.Waiting[0].Node == "Long"
	}, within, 20*time.Millisecond)
	require.Equal(t, "production", gjson.GetBytes(x.Data, "resultData.runData.Short.0.data.main.0.0.json.executionMode").Str, "the input is given on")
	status, _, page := l.do(t, request(t, "GET", form, ""))
	require.Equal(t, 410, status)
	require.Contains(t, page, "its time is up")
	token, page := l.page(t, x.Waiting[0].URL)
	require.Contains(t, page, "Long")
	status, _, _ = l.send(t, form, map[string][]string{"token": {token}, "field-0": {"Ann"}}, nil)
	require.Equal(t, 410, status, "a token is of no use with another link")

	require.NoError(t, l.Conn.Cancel(t.Context(), id, ""))
	status, _, page = l.do(t, request(t, "GET", x.Waiting[0].URL, ""))
	require.Equal(t, 410, status)
	require.Contains(t, page, "This form is closed")
}

// The person who began an execution with a form is not shown the form that another one has the link of.
func TestFormOfSomebodyElse(t *testing.T) {
	l := start(t)
	text := func(label string) object { return object{"values": []object{{"fieldLabel": label}}} }
	l.activate(t, flow("approve",
		node("First", formTrigger, 2.2, object{"formTitle": "One", "formFields": text("Name"), "options": object{"path": "approve"}}),
		node("Second", formPage, 1, object{"formFields": text("More"), "options": object{"formTitle": "Two"}}),
		node("Boss", wait, 1.1, object{"resume": "form", "formTitle": "Allow?", "formFields": text("Allowed")}),
		node("End", formPage, 1, object{"operation": "completion", "completionTitle": "={{ $json.Allowed }}"})))
	l.hosted(t, "/form/approve")
	_, header, _ := l.send(t, l.PublicURL+"/form/approve?More=filled", map[string][]string{"field-0": {"Ann"}}, nil)
	id, own := engine.ExecutionID(header.Get("X-Reprise-Execution")), header.Get("Location")
	token, page := l.page(t, own)
	require.Contains(t, page, `value="filled"`, "what the first address says goes along")
	status, header, _ := l.send(t, own, map[string][]string{"token": {token}, "field-0": {"x"}}, nil)
	require.Equal(t, 303, status)
	require.Equal(t, own, header.Get("Location"))
	status, _, page = l.do(t, request(t, "GET", own, ""))
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, page, "Please wait")
	require.NotContains(t, page, "Allow?")
	x, err := l.Conn.Get(t.Context(), id, false)
	require.NoError(t, err)
	require.Len(t, x.Waiting, 1)
	token, page = l.page(t, x.Waiting[0].URL)
	require.Contains(t, page, "Allow?")
	status, _, _ = l.send(t, own, map[string][]string{"token": {token}, "field-0": {"me"}}, nil)
	require.Equal(t, http.StatusOK, status)
	_, _, page = l.send(t, x.Waiting[0].URL, map[string][]string{"token": {token}, "field-0": {"granted"}}, nil)
	require.Contains(t, page, "Your response has been recorded")
	require.Eventually(t, func() bool {
		_, _, page := l.do(t, request(t, "GET", own, ""))
		return strings.Contains(page, "granted")
	}, within, 20*time.Millisecond)
}
