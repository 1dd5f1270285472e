package trigger_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/pkg/queue"
)

type object = map[string]any

// node is one of a document, flow a chain of them.
func node(name, kind string, version float64, parameters object) object {
	return object{"name": name, "type": kind, "typeVersion": version, "parameters": parameters, "position": []int{0, 0}, "webhookId": "hook-" + name}
}

func flow(id string, nodes ...object) []byte {
	connections, last := object{}, ""
	for _, n := range nodes {
		name := n["name"].(string)
		if last != "" {
			connections[last] = object{"main": [][]object{{{"node": name, "type": "main", "index": 0}}}}
		}
		last = name
	}
	data, _ := json.Marshal(object{"id": id, "name": "The " + id, "nodes": nodes, "connections": connections, "settings": object{"executionOrder": "v1"}})
	return data
}

const (
	webhook = "n8n-nodes-base.webhook"
	respond = "n8n-nodes-base.respondToWebhook"
	noOp    = "n8n-nodes-base.noOp"
	code    = "n8n-nodes-base.code"
)

func request(t *testing.T, method, url, body string, headers ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func TestWebhook(t *testing.T) {
	l := start(t)
	at := func(path string) string { return l.PublicURL + "/webhook/" + path }

	t.Run("methods, and what is not there", func(t *testing.T) {
		l.activate(t, flow("many", node("Many", webhook, 2, object{"path": "many", "httpMethod": []string{"GET", "POST"}, "multipleMethods": true, "responseMode": "lastNode"})))
		for _, method := range []string{"GET", "POST"} {
			status, _, body := l.do(t, request(t, method, at("many?a=1&a=2&b[c]=3&d[]=4&e[0]=5"), ""))
			require.Equal(t, 200, status, body)
			require.Equal(t, `{"a":["1","2"],"b":{"c":"3"},"d":["4"],"e":["5"]}`, gjson.Get(body, "query").Raw)
			require.Equal(t, at("many"), gjson.Get(body, "webhookUrl").Str)
		}
		status, header, body := l.do(t, request(t, "PUT", at("many"), ""))
		require.Equal(t, 404, status)
		require.Equal(t, "GET, POST", header.Get("Allow"))
		require.Contains(t, gjson.Get(body, "hint").Str, "GET, POST")
		status, _, _ = l.do(t, request(t, "GET", at("nothing"), ""))
		require.Equal(t, 404, status)
	})

	t.Run("a path that another workflow has", func(t *testing.T) {
		l.activate(t, flow("owner", node("Hook", webhook, 2, object{"path": "taken/:id", "httpMethod": "POST"})))
		put := func(id, path, method string) error {
			w, err := l.Conn.PutWorkflow(t.Context(), queue.WorkflowPutRequest{Document: flow(id, node("Hook", webhook, 2, object{"path": path, "httpMethod": method}))})
			require.NoError(t, err)
			_, err = l.Conn.ActivateWorkflow(t.Context(), w.ID, true)
			return err
		}
		err := put("second", "taken/:other", "POST")
		require.ErrorContains(t, err, `POST /webhook/hook-Hook/taken/:other of node "Hook" is taken by node "Hook" in the active workflow "owner"`)
		require.NoError(t, put("second", "taken/:other", "GET"), "another method is another call")
		_, err = l.Conn.PutWorkflow(t.Context(), queue.WorkflowPutRequest{Document: flow("second", node("Hook", webhook, 2, object{"path": "taken/:id", "httpMethod": "POST"}))})
		require.ErrorContains(t, err, "is taken", "an active workflow cannot change to it either")
		_, err = l.Conn.PutWorkflow(t.Context(), queue.WorkflowPutRequest{Document: flow("owner", node("Hook", webhook, 2, object{"path": "taken/:id", "httpMethod": "POST", "responseMode": "lastNode"}))})
		require.NoError(t, err, "its own calls are no clash")
		_, err = l.Conn.ActivateWorkflow(t.Context(), "owner", false)
		require.NoError(t, err)
		require.NoError(t, put("third", "taken/:id", "POST"))
	})

	t.Run("deactivated", func(t *testing.T) {
		w := l.activate(t, flow("off", node("Off", webhook, 2, object{"path": "off"})))
		_, err := l.Conn.ActivateWorkflow(t.Context(), w.ID, false)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			status, _, _ := l.do(t, request(t, "GET", at("off"), ""))
			return status == 404
		}, within, 20*time.Millisecond)
	})

	t.Run("bodies", func(t *testing.T) {
		l.activate(t, flow("bodies", node("Hook", webhook, 2, object{"path": "bodies", "httpMethod": "POST", "responseMode": "lastNode"})))
		for _, test := range []struct{ kind, body, want string }{
			{"application/json", `{"a":{"b":[1]}}`, `{"a":{"b":[1]}}`},
			{"application/vnd.api+json", `[1]`, `[1]`},
			{"application/x-www-form-urlencoded", "z=1&a=b+c&z=2", `{"z":["1","2"],"a":"b c"}`},
			{"text/plain", "hällo", `"hällo"`},
			{"application/xml; charset=utf-8", `<?xml version="1.0"?><Order Id="7"><Item>a</Item><Item> b  c </Item><Note/></Order>`, `{"order":{"$":{"Id":"7"},"item":["a","b c"],"note":""}}`},
			{"application/json", "", `{}`},
		} {
			status, _, body := l.do(t, request(t, "POST", at("bodies"), test.body, "Content-Type", test.kind))
			require.Equal(t, 200, status, body)
			require.Equal(t, test.want, gjson.Get(body, "body").Raw, test.kind)
		}
		var zipped bytes.Buffer
		z := gzip.NewWriter(&zipped)
		_, _ = z.Write([]byte(`{"zipped":true}`))
		require.NoError(t, z.Close())
		_, _, body := l.do(t, request(t, "POST", at("bodies"), zipped.String(), "Content-Type", "application/json", "Content-Encoding", "gzip"))
		require.True(t, gjson.Get(body, "body.zipped").Bool(), body)
		status, _, _ := l.do(t, request(t, "POST", at("bodies"), `{"a"`, "Content-Type", "application/json"))
		require.Equal(t, 422, status)
		status, _, body = l.do(t, request(t, "POST", at("bodies"), `<a><b></a>`, "Content-Type", "text/xml"))
		require.Equal(t, 422, status)
		require.Contains(t, body, "not valid XML")
		status, _, _ = l.do(t, request(t, "POST", at("bodies"), strings.Repeat("x", 11<<20), "Content-Type", "text/plain"))
		require.Equal(t, 413, status)
		bomb := bytes.Buffer{}
		z = gzip.NewWriter(&bomb)
		_, _ = z.Write(make([]byte, 11<<20))
		require.NoError(t, z.Close())
		status, _, _ = l.do(t, request(t, "POST", at("bodies"), bomb.String(), "Content-Encoding", "gzip"))
		require.Equal(t, 413, status, "what it becomes is bounded too")
	})

	t.Run("files", func(t *testing.T) {
		l.activate(t, flow("files", node("Hook", webhook, 2, object{"path": "files", "httpMethod": "POST", "responseMode": "lastNode",
			"responseData": "firstEntryBinary", "responseBinaryPropertyName": "photo"})))
		var form bytes.Buffer
		w := multipart.NewWriter(&form)
		require.NoError(t, w.WriteField("who", "me"))
		header := textproto.MIMEHeader{}
		header.Set("Content-Disposition", `form-data; name="photo"; filename="../p.png"`)
		header.Set("Content-Type", "image/png")
		part, err := w.CreatePart(header)
		require.NoError(t, err)
		picture := strings.Repeat("\x89PNG\x00", 20_000) // too large to stay in its item
		_, _ = part.Write([]byte(picture))
		require.NoError(t, w.Close())
		status, answer, body := l.do(t, request(t, "POST", at("files"), form.String(), "Content-Type", w.FormDataContentType()))
		require.Equal(t, 200, status)
		require.Equal(t, "image/png", answer.Get("Content-Type"))
		require.Equal(t, picture, body)
		item := gjson.ParseBytes(l.ended(t, answer).Data).Get("resultData.runData.Hook.0.data.main.0.0")
		require.Equal(t, `{"who":"me"}`, item.Get("json.body").Raw)
		require.Equal(t, "p.png", item.Get("binary.photo.fileName").Str)

		l.activate(t, flow("raw", node("Hook", webhook, 2, object{"path": "raw", "httpMethod": "POST", "responseMode": "lastNode",
			"responseData": "firstEntryBinary", "options": object{"rawBody": true}})))
		_, answer, body = l.do(t, request(t, "POST", at("raw"), `{"a": 1}`, "Content-Type", "application/json"))
		require.Equal(t, `{"a": 1}`, body)
		require.Equal(t, "application/json", answer.Get("Content-Type"))
		_, answer, body = l.do(t, request(t, "POST", at("raw"), "\x00\xff", "Content-Type", "application/pdf"))
		require.Equal(t, "\x00\xff", body)
		require.Equal(t, "application/pdf", answer.Get("Content-Type"))
	})

	t.Run("answers at once, with an expression about the call", func(t *testing.T) {
		l.activate(t, flow("once", node("Hook", webhook, 2, object{"path": "once", "options": object{
			"responseData": "={{ $json.query.challenge }}", "responseHeaders": object{"entries": []object{{"name": "X-Own", "value": "yes"}}}}})))
		status, header, body := l.do(t, request(t, "GET", at("once?challenge=42"), ""))
		require.Equal(t, 200, status)
		require.Equal(t, "42", body)
		require.Equal(t, "yes", header.Get("X-Own"))
		require.Contains(t, header.Get("Content-Security-Policy"), "sandbox")
		l.activate(t, flow("nothing", node("Hook", webhook, 2, object{"path": "nothing-back", "options": object{"noResponseBody": true}})))
		_, _, body = l.do(t, request(t, "GET", at("nothing-back"), ""))
		require.Empty(t, body)
	})

	t.Run("the same Idempotency-Key begins one execution", func(t *testing.T) {
		l.activate(t, flow("keyed", node("Hook", webhook, 2, object{"path": "keyed", "httpMethod": "POST", "responseMode": "lastNode"})))
		_, first, one := l.do(t, request(t, "POST", at("keyed"), `{"n":1}`, "Content-Type", "application/json", "Idempotency-Key", "order-1"))
		_, second, two := l.do(t, request(t, "POST", at("keyed"), `{"n":2}`, "Content-Type", "application/json", "Idempotency-Key", "order-1"))
		require.Equal(t, first.Get("X-Reprise-Execution"), second.Get("X-Reprise-Execution"))
		require.Equal(t, one, two, "the answer is that of the first")
		_, third, _ := l.do(t, request(t, "POST", at("keyed"), `{}`, "Content-Type", "application/json", "Idempotency-Key", "order-2"))
		require.NotEqual(t, first.Get("X-Reprise-Execution"), third.Get("X-Reprise-Execution"))
	})

	t.Run("kinds of answers of a node", func(t *testing.T) {
		for name, test := range map[string]struct {
			parameters   object
			status       int
			header, want string
			body         string
		}{
			"redirect": {object{"respondWith": "redirect", "redirectURL": "https://example.com/x"}, 307, "Location", "https://example.com/x", ""},
			"nothing":  {object{"respondWith": "noData", "options": object{"responseCode": 204}}, 204, "", "", ""},
			"object": {object{"respondWith": "json", "responseBody": "={{ { n: $json.n } }}", "options": object{"responseHeaders": object{"entries": []object{
				{"name": "Content-Type", "value": "application/problem+json"}}}}}, 200, "Content-Type", "application/problem+json", `{"n":1}`},
			"all":    {object{"respondWith": "allIncomingItems", "options": object{"enableStreaming": true}}, 200, "", "", `[{"n":1},{"n":2}]`},
			"binary": {object{"respondWith": "binary", "responseDataSource": "set", "inputFieldName": "f"}, 200, "Content-Type", "text/csv", "a,b"},
		} {
			t.Run(name, func(t *testing.T) {
				l.activate(t, flow("respond-"+name,
					node("Hook", webhook, 2, object{"path": "respond-" + name, "responseMode": "responseNode"}),
					node("Make", code, 2, object{"jsCode": "return [{json:{n:1},binary:{f:{mimeType:'text/csv',fileName:'f.csv',data:'YSxi'}}},{json:{n:2}}]"}),
					node("Answer", respond, 1.4, test.parameters), node("After", noOp, 1, object{})))
				status, header, body := l.do(t, request(t, "GET", at("respond-"+name), ""))
				require.Equal(t, test.status, status, body)
				require.Equal(t, test.body, body)
				if test.header != "" {
					require.Equal(t, test.want, header.Get(test.header))
				}
			})
		}
	})
}

// A workflow that cannot be hosted is not made active, and the answer says why.
func TestActivationIsChecked(t *testing.T) {
	l := start(t)
	for name, test := range map[string]struct {
		node object
		want string
	}{
		"no trigger":    {node("Start", "n8n-nodes-base.manualTrigger", 1, object{}), "no trigger"},
		"no path":       {object{"name": "Hook", "type": webhook, "typeVersion": 2, "parameters": object{}}, "no path"},
		"no responder":  {node("Hook", webhook, 2, object{"path": "x", "responseMode": "responseNode"}), "Respond to Webhook"},
		"bad cron":      {node("Clock", "n8n-nodes-base.scheduleTrigger", 1.2, object{"rule": object{"interval": []object{{"field": "cronExpression", "expression": "nonsense"}}}}), "cron expression"},
		"bad method":    {node("Hook", webhook, 2, object{"path": "x", "httpMethod": "FETCH"}), "FETCH"},
		"minute of 600": {node("Clock", "n8n-nodes-base.scheduleTrigger", 1.2, object{"rule": object{"interval": []object{{"field": "hours", "triggerAtMinute": 600}}}}), "triggerAtMinute"},
	} {
		w, err := l.Conn.PutWorkflow(t.Context(), queue.WorkflowPutRequest{Document: flow("bad", test.node)})
		require.NoError(t, err, name)
		_, err = l.Conn.ActivateWorkflow(t.Context(), w.ID, true)
		require.ErrorContains(t, err, test.want, name)
	}
	// What is active stays so only with a document that can be.
	l.activate(t, flow("good", node("Hook", webhook, 2, object{"path": "good"})))
	_, err := l.Conn.PutWorkflow(t.Context(), queue.WorkflowPutRequest{Document: flow("good", node("Start", "n8n-nodes-base.manualTrigger", 1, object{}))})
	require.ErrorContains(t, err, "no trigger")
	status, _, _ := l.do(t, request(t, "GET", l.PublicURL+"/webhook/good", ""))
	require.Equal(t, 200, status)
}

// TestAccess has a coordinator of its own for the settings.
func TestAccess(t *testing.T) {
	l := start(t)
	file := filepath.Join(t.TempDir(), "callers.json")
	require.NoError(t, os.WriteFile(file, []byte(`[
		{"id":"b","name":"basic","type":"httpBasicAuth","data":{"user":"ann","password":"pass-word-1"}},
		{"id":"h","name":"header","type":"httpHeaderAuth","data":{"name":"X-Key","value":"key-value-1"}},
		{"id":"j","name":"jwt","type":"jwtAuth","data":{"keyType":"passphrase","secret":"jwt-secret-1","algorithm":"HS256"}}]`), 0o600))
	addr := freeAddr(t)
	p, err := service.StartCoordinator(t.Context(), service.Coordinator{
		NATSURL: l.NATSURL, RedisURL: l.RedisURL, HTTPAddr: addr, WebhookCredentialsFile: file, WebhookRate: "30/minute", TrustedProxies: []string{"127.0.0.1"},
	}, zap.NewNop())
	require.NoError(t, err)
	t.Cleanup(func() { p.Stop(t.Context()) })
	l.PublicURL = "http://" + addr
	at := func(path string) string { return l.PublicURL + "/webhook/" + path }
	hook := func(name, authentication, kind, credential string, options object) {
		n := node("Hook", webhook, 2, object{"path": name, "responseMode": "lastNode", "authentication": authentication, "options": options})
		if kind != "" {
			n["credentials"] = object{kind: object{"id": credential, "name": "c"}}
		}
		l.activate(t, flow(name, n))
	}

	hook("basic", "basicAuth", "httpBasicAuth", "b", nil)
	status, header, _ := l.do(t, request(t, "GET", at("basic"), ""))
	require.Equal(t, 401, status)
	require.Contains(t, header.Get("WWW-Authenticate"), "Basic")
	r := request(t, "GET", at("basic"), "")
	r.SetBasicAuth("ann", "wrong")
	status, _, _ = l.do(t, r)
	require.Equal(t, 403, status)
	r.SetBasicAuth("ann", "pass-word-1")
	status, header, body := l.do(t, r)
	require.Equal(t, 200, status)
	require.False(t, gjson.Get(body, "headers.authorization").Exists(), "the password is no part of the item")
	require.NotContains(t, string(l.ended(t, header).Data), "YW5u")

	hook("header", "headerAuth", "httpHeaderAuth", "h", nil)
	status, _, _ = l.do(t, request(t, "GET", at("header"), "", "X-Key", "key-value-2"))
	require.Equal(t, 403, status)
	status, _, body = l.do(t, request(t, "GET", at("header"), "", "X-Key", "key-value-1"))
	require.Equal(t, 200, status)
	require.NotContains(t, body, "key-value-1")

	hook("token", "jwtAuth", "jwtAuth", "j", nil)
	sign := func(method jwt.SigningMethod, key any, claims jwt.MapClaims) string {
		text, err := jwt.NewWithClaims(method, claims).SignedString(key)
		require.NoError(t, err)
		return "Bearer " + text
	}
	good := jwt.MapClaims{"sub": "ann", "exp": time.Now().Add(time.Hour).Unix()}
	for name, token := range map[string]string{
		"another key":       sign(jwt.SigningMethodHS256, []byte("other"), good),
		"another algorithm": sign(jwt.SigningMethodHS512, []byte("jwt-secret-1"), good),
		"no algorithm":      sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, good),
		"expired":           sign(jwt.SigningMethodHS256, []byte("jwt-secret-1"), jwt.MapClaims{"exp": time.Now().Add(-time.Hour).Unix()}),
	} {
		status, _, _ = l.do(t, request(t, "GET", at("token"), "", "Authorization", token))
		require.Equal(t, 403, status, name)
	}
	_, _, body = l.do(t, request(t, "GET", at("token"), "", "Authorization", sign(jwt.SigningMethodHS256, []byte("jwt-secret-1"), good)))
	require.Equal(t, "ann", gjson.Get(body, "jwtPayload.sub").Str, body)

	hook("unknown", "basicAuth", "httpBasicAuth", "nobody", nil)
	r = request(t, "GET", at("unknown"), "")
	r.SetBasicAuth("", "")
	status, _, _ = l.do(t, r)
	require.Equal(t, 500, status, "nobody is let in without a credential to check against")

	hook("listed", "none", "", "", object{"ipWhitelist": "10.1.0.0/16, 192.0.2.7", "ignoreBots": true})
	status, _, _ = l.do(t, request(t, "GET", at("listed"), ""))
	require.Equal(t, 403, status)
	status, _, _ = l.do(t, request(t, "GET", at("listed"), "", "X-Forwarded-For", "192.0.2.7, 203.0.113.9"))
	require.Equal(t, 403, status, "the last address before our proxy counts, not what the caller wrote")
	status, _, _ = l.do(t, request(t, "GET", at("listed"), "", "X-Forwarded-For", "203.0.113.9, 10.1.2.3"))
	require.Equal(t, 200, status)
	status, _, _ = l.do(t, request(t, "GET", at("listed"), "", "X-Forwarded-For", "10.1.2.3", "User-Agent", "Googlebot/2.1"))
	require.Equal(t, 403, status)

	hook("cors", "none", "", "", object{"allowedOrigins": "https://a.example, https://b.example"})
	_, header, _ = l.do(t, request(t, "GET", at("cors"), "", "Origin", "https://b.example"))
	require.Equal(t, "https://b.example", header.Get("Access-Control-Allow-Origin"))
	_, header, _ = l.do(t, request(t, "GET", at("cors"), "", "Origin", "https://c.example"))
	require.Empty(t, header.Get("Access-Control-Allow-Origin"))
	status, header, _ = l.do(t, request(t, "OPTIONS", at("cors"), "", "Origin", "https://a.example", "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "X-Own"))
	require.Equal(t, 204, status)
	require.Equal(t, "https://a.example", header.Get("Access-Control-Allow-Origin"))
	require.Contains(t, header.Get("Access-Control-Allow-Methods"), "GET")
	require.Equal(t, "X-Own", header.Get("Access-Control-Allow-Headers"))

	for range 40 {
		if status, header, _ = l.do(t, request(t, "GET", at("cors"), "")); status == 429 {
			break
		}
	}
	require.Equal(t, 429, status, "the rate of one trigger")
	require.NotEmpty(t, header.Get("Retry-After"))
	status, _, _ = l.do(t, request(t, "GET", at("header"), "", "X-Key", "key-value-1"))
	require.Equal(t, 200, status, "another one has its own")
}

// A caller that is not answered in time is told the execution, which goes on.
func TestCallerIsNotAnsweredInTime(t *testing.T) {
	l := start(t)
	addr := freeAddr(t)
	p, err := service.StartCoordinator(t.Context(), service.Coordinator{
		NATSURL: l.NATSURL, RedisURL: l.RedisURL, HTTPAddr: addr, WebhookTimeout: 300 * time.Millisecond,
	}, zap.NewNop())
	require.NoError(t, err)
	t.Cleanup(func() { p.Stop(t.Context()) })
	l.PublicURL = "http://" + addr
	l.activate(t, flow("slow", node("Hook", webhook, 2, object{"path": "slow", "responseMode": "lastNode"}),
		node("Wait", "n8n-nodes-base.wait", 1.1, object{"amount": 2, "unit": "seconds"})))
	status, header, body := l.do(t, request(t, "GET", l.PublicURL+"/webhook/slow", ""))
	require.Equal(t, 504, status)
	require.Equal(t, header.Get("X-Reprise-Execution"), gjson.Get(body, "executionId").Str)
	require.Equal(t, "success", fmt.Sprint(l.ended(t, header).Status))
}
