package trigger_test

import (
	"bytes"
	"html"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

const (
	formTrigger = "n8n-nodes-base.formTrigger"
	formPage    = "n8n-nodes-base.form"
	chat        = "@n8n/n8n-nodes-langchain.chatTrigger"
)

// send posts a multipart form.
func (l *lab) send(t *testing.T, address string, values map[string][]string, files map[string]string) (int, http.Header, string) {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for name, all := range values {
		for _, value := range all {
			require.NoError(t, w.WriteField(name, value))
		}
	}
	for name, content := range files {
		part, err := w.CreateFormFile(name, name+".txt")
		require.NoError(t, err)
		_, _ = part.Write([]byte(content))
	}
	require.NoError(t, w.Close())
	return l.do(t, request(t, "POST", address, body.String(), "Content-Type", w.FormDataContentType()))
}

func TestForm(t *testing.T) {
	l := start(t)
	fields := []object{
		{"fieldLabel": "Name", "requiredField": true, "placeholder": `"><script>`}, {"fieldLabel": "About", "fieldType": "textarea"},
		{"fieldLabel": "Age", "fieldType": "number"}, {"fieldLabel": "Mail", "fieldType": "email"}, {"fieldLabel": "Born", "fieldType": "date", "formatDate": "dd.MM.yyyy"},
		{"fieldLabel": "One", "fieldType": "dropdown", "fieldOptions": object{"values": []object{{"option": "a"}, {"option": "b"}}}},
		{"fieldLabel": "Some", "fieldType": "checkbox", "fieldOptions": object{"values": []object{{"option": "x"}, {"option": "y"}}}},
		{"fieldLabel": "A file", "fieldType": "file", "multipleFiles": false, "acceptFileTypes": ".txt"},
		{"fieldType": "hiddenField", "fieldName": "from", "fieldValue": "site"}, {"fieldType": "html", "html": "<b>bold</b>"},
	}
	l.activate(t, flow("form", node("Form", formTrigger, 2.2, object{"formTitle": "Tell us", "formFields": object{"values": fields},
		"options": object{"path": "tell", "buttonLabel": "Go", "respondWithOptions": object{"values": object{"formSubmittedText": "Well done"}}}})))
	address := l.PublicURL + "/form/tell"
	l.hosted(t, "/form/tell")
	status, header, page := l.do(t, request(t, "GET", address+"?About=me", ""))
	require.Equal(t, 200, status)
	require.Contains(t, header.Get("Content-Security-Policy"), "default-src 'none'")
	require.NotContains(t, page, "<script>", "what is shown is escaped")
	for _, text := range []string{"Tell us", ">Go<", `name="field-0"`, `type="email"`, ">me</textarea>", "<b>bold</b>", `accept=".txt"`} {
		require.Contains(t, page, text)
	}
	for name, values := range map[string]map[string][]string{
		"must be filled in": {}, "must be a number": {"field-0": {"me"}, "field-2": {"old"}}, "no choice": {"field-0": {"me"}, "field-5": {"c"}},
	} {
		status, _, page = l.send(t, address, values, nil)
		require.Equal(t, 400, status)
		require.Contains(t, page, name)
	}
	status, header, page = l.send(t, address, map[string][]string{
		"field-0": {"Ann"}, "field-2": {"41.5"}, "field-3": {"a@b.example"}, "field-4": {"2001-02-03"}, "field-5": {"b"}, "field-6": {"x", "y"}, "field-8": {"forged"},
	}, map[string]string{"field-7": "text of a file"})
	require.Equal(t, 200, status, page)
	require.Contains(t, page, "Well done")
	item := gjson.ParseBytes(l.ended(t, header).Data).Get("resultData.runData.Form.0.data.main.0.0")
	got := item.Get("json")
	require.Equal(t, "Ann", got.Get("Name").Str)
	require.Equal(t, 41.5, got.Get("Age").Num)
	require.Equal(t, "03.02.2001", got.Get("Born").Str)
	require.Equal(t, `["x","y"]`, got.Get("Some").Raw)
	require.Equal(t, "site", got.Get("from").Str, "a hidden field is not the caller's to set")
	require.Equal(t, "field-7.txt", got.Get("A file.filename").Str)
	require.Equal(t, "production", got.Get("formMode").Str)
	_, err := time.Parse("2006-01-02T15:04:05.000-07:00", got.Get("submittedAt").Str)
	require.NoError(t, err)
	require.Equal(t, "dGV4dCBvZiBhIGZpbGU=", item.Get("binary.A_file.data").Str)
}

var tokenInput = regexp.MustCompile(`name="token" value="([^"]+)"`)

// A form of several pages: each waits in the execution, and is sent once.
func TestFormOfSeveralPages(t *testing.T) {
	l := start(t)
	text := func(label string) object { return object{"values": []object{{"fieldLabel": label}}} }
	l.activate(t, flow("pages",
		node("First", formTrigger, 2.2, object{"formTitle": "One", "formFields": text("Name"), "options": object{"path": "pages"}}),
		node("Second", formPage, 1, object{"formFields": text("={{ 'Hello ' + $json.Name }}"), "options": object{"formTitle": "Two"}}),
		node("End", formPage, 1, object{"operation": "completion", "completionTitle": "Bye", "completionMessage": "={{ $('First').item.json.Name }} said {{ $json['Hello Ann'] }}"})))
	l.hosted(t, "/form/pages")
	status, header, _ := l.send(t, l.PublicURL+"/form/pages", map[string][]string{"field-0": {"Ann"}}, nil)
	require.Equal(t, 303, status)
	next := header.Get("Location")
	require.Contains(t, next, "/form-waiting/")
	id := header.Get("X-Reprise-Execution")

	status, _, page := l.do(t, request(t, "GET", next, ""))
	require.Equal(t, 200, status)
	require.Contains(t, page, "Hello Ann")
	token := tokenInput.FindStringSubmatch(page)
	require.Len(t, token, 2)
	for _, forged := range []string{strings.Replace(next, "signature=f.", "signature=f.0", 1), l.PublicURL + "/form-waiting/" + id} {
		status, _, _ = l.do(t, request(t, "GET", forged, ""))
		require.Equal(t, 403, status, "the address is the permission")
	}
	sent := map[string][]string{"token": {html.UnescapeString(token[1])}, "field-0": {"<i>hi</i>"}}
	status, header, _ = l.send(t, next, sent, nil)
	require.Equal(t, 303, status)
	require.Equal(t, next, header.Get("Location"))
	status, header, page = l.do(t, request(t, "GET", next, ""))
	require.Equal(t, 200, status)
	require.Contains(t, page, "Bye")
	require.Contains(t, page, "Ann said &lt;i&gt;hi&lt;/i&gt;")
	require.Equal(t, "text/html; charset=utf-8", header.Get("Content-Type"))
	_, _, again := l.send(t, next, sent, nil)
	require.Contains(t, again, "Bye", "sent twice, it is taken once")
	location, err := url.Parse(next)
	require.NoError(t, err)
	require.Contains(t, location.Path, id)
}

func TestChat(t *testing.T) {
	l := start(t)
	l.activate(t, flow("chat", node("Chat", chat, 1.1, object{"public": true, "initialMessages": "Hello\n<b>you</b>", "options": object{"title": "Ask me", "allowedOrigins": "https://a.example"}}),
		node("Say", code, 2, object{"jsCode": "return [{json:{output:'you said '+$input.first().json.chatInput, session:$input.first().json.sessionId}}]"})))
	l.activate(t, flow("private", node("Inside", chat, 1.1, object{}), node("Hook", webhook, 2, object{"path": "beside"})))
	address := l.PublicURL + "/webhook/hook-Chat/chat"
	l.hosted(t, "/webhook/hook-Chat/chat")
	status, header, page := l.do(t, request(t, "GET", address, ""))
	require.Equal(t, 200, status)
	require.Contains(t, page, "Ask me")
	require.Contains(t, page, "&lt;b&gt;you&lt;/b&gt;")
	require.Regexp(t, "script-src 'nonce-", header.Get("Content-Security-Policy"))
	status, header, body := l.do(t, request(t, "POST", address, `{"action":"sendMessage","sessionId":"s1","chatInput":"hi"}`, "Content-Type", "application/json", "Origin", "https://a.example"))
	require.Equal(t, 200, status, body)
	require.JSONEq(t, `{"output":"you said hi","session":"s1"}`, body)
	require.Equal(t, "https://a.example", header.Get("Access-Control-Allow-Origin"))
	_, _, body = l.do(t, request(t, "POST", address, `{"chatInput":"hi"}`, "Content-Type", "application/json"))
	require.NotEmpty(t, gjson.Get(body, "session").Str, "a session is made for one who names none")
	status, _, _ = l.do(t, request(t, "POST", address, `[]`, "Content-Type", "application/json"))
	require.Equal(t, 400, status)
	_, _, body = l.do(t, request(t, "POST", address, `{"action":"loadPreviousSession","sessionId":"s1"}`, "Content-Type", "application/json"))
	require.JSONEq(t, `{"data":[]}`, body)
	status, _, _ = l.do(t, request(t, "POST", l.PublicURL+"/webhook/hook-Inside/chat", `{"chatInput":"hi"}`, "Content-Type", "application/json"))
	require.Equal(t, 404, status, "only public chats are hosted")
}
