package http

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	nethttp "net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
	"go.uber.org/zap/zaptest"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// service answers as the services of the recorded runs did.
func service(t testing.TB) *httptest.Server {
	t.Helper()
	mux := nethttp.NewServeMux()
	fixed := func(path, contentType, body string) {
		mux.HandleFunc(path, func(w nethttp.ResponseWriter, _ *nethttp.Request) {
			if contentType != "" {
				w.Header().Set("Content-Type", contentType)
			}
			_, _ = io.WriteString(w, body)
		})
	}
	fixed("/json", "application/json", `{"ok":true,"list":[1,2,3],"nested":{"a":null}}`)
	fixed("/array", "application/json; charset=utf-8", `[{"id":1},{"id":2}]`)
	fixed("/scalar", "application/json", `42`)
	fixed("/empty", "application/json", ``)
	fixed("/problem", "application/problem+json", "\xef\xbb\xbf{\"title\":\"x\"}")
	fixed("/text", "text/plain; charset=utf-8", "plain text\nsecond line")
	fixed("/latin1", "text/plain; charset=ISO-8859-1", "caf\xe9")
	fixed("/badjson", "application/json", `{"oops": `)
	fixed("/file.csv", "text/csv", "id\n1\n")
	mux.HandleFunc("/bin", func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", `attachment; filename="data.bin"`)
		_, _ = w.Write([]byte{0, 1, 2, 250})
	})
	echo := func(w nethttp.ResponseWriter, r *nethttp.Request) {
		body, _ := io.ReadAll(r.Body)
		headers := map[string]string{}
		for name, values := range r.Header {
			headers[strings.ToLower(name)] = strings.Join(values, ", ")
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"method": r.Method, "path": r.URL.Path, "query": r.URL.RawQuery, "headers": headers, "body": string(body), "host": r.Host})
	}
	mux.HandleFunc("/echo", echo)
	mux.HandleFunc("/echo/", echo)
	mux.HandleFunc("/status/{code}", func(w nethttp.ResponseWriter, r *nethttp.Request) {
		code, _ := strconv.Atoi(r.PathValue("code"))
		if code == 204 {
			w.WriteHeader(code)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, "{\"error\":{\"code\":\"E%d\",\"message\":\"scripted %d\"}}\n", code, code)
	})
	mux.HandleFunc("/textstatus", func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		nethttp.Error(w, "plain failure", 500)
	})
	mux.HandleFunc("/redirect", func(w nethttp.ResponseWriter, r *nethttp.Request) {
		nethttp.Redirect(w, r, "/json", nethttp.StatusFound)
	})
	mux.HandleFunc("/loop", func(w nethttp.ResponseWriter, r *nethttp.Request) {
		nethttp.Redirect(w, r, "/loop", nethttp.StatusFound)
	})
	mux.HandleFunc("/hang", func(_ nethttp.ResponseWriter, r *nethttp.Request) { <-r.Context().Done() })
	mux.HandleFunc("/page", func(w nethttp.ResponseWriter, r *nethttp.Request) {
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		page = max(page, 1)
		next, items := "null", fmt.Sprintf(`[{"text":"}}%d"}]`, page)
		if page < 3 {
			next = fmt.Sprintf(`"http://%s/page?page=%d"`, r.Host, page+1)
		}
		if page > 3 {
			items = "[]"
		}
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Has("list") {
			_, _ = io.WriteString(w, items)
			return
		}
		_, _ = fmt.Fprintf(w, `{"page":%d,"items":%s,"next":%s}`, page, items, next)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// resolver evaluates the few forms of expressions that these tests use.
type resolver struct{}

func (resolver) Resolve(_ context.Context, call *node.Call, item int, raw json.RawMessage) (json.RawMessage, error) {
	out, err := evaluate(call, item, gjson.ParseBytes(raw))
	if out == "" {
		return nil, err
	}
	return json.RawMessage(out), err
}

var segment = regexp.MustCompile(`\{\{(.*?)\}\}`)

func evaluate(call *node.Call, item int, v gjson.Result) (out string, err error) {
	switch {
	case v.IsObject():
		var o jsonobject.Object
		v.ForEach(func(key, value gjson.Result) bool {
			var inner string
			inner, err = evaluate(call, item, value)
			o.Set(key.String(), inner)
			return err == nil
		})
		return o.String(), err
	case v.IsArray():
		var list []string
		v.ForEach(func(_, value gjson.Result) bool {
			var inner string
			inner, err = evaluate(call, item, value)
			list = append(list, inner)
			return err == nil
		})
		return "[" + strings.Join(list, ",") + "]", err
	case v.Type != gjson.String || !strings.HasPrefix(v.Str, "="):
		return v.Raw, nil
	}
	text := v.Str[1:]
	if m := segment.FindStringSubmatch(text); m != nil && m[0] == text {
		return formula(call, item, strings.TrimSpace(m[1]))
	}
	text = segment.ReplaceAllStringFunc(text, func(s string) string {
		var value string
		value, err = formula(call, item, strings.TrimSpace(strings.Trim(s, "{}")))
		return gjson.Parse(value).String()
	})
	return jsonobject.Quote(text), err
}

var (
	ofResponse = regexp.MustCompile(`^(!?)\((.*)\)\.([a-z.]+)( === null)?$`)
	ofModel    = regexp.MustCompile(`^\$fromAI\('([^']+)'`)
)

func formula(call *node.Call, item int, text string) (string, error) {
	switch {
	case text == "$json":
		return string(call.Inputs[0][item].JSON), nil
	case strings.HasPrefix(text, "$json."):
		return gjson.GetBytes(call.Inputs[0][item].JSON, text[len("$json."):]).Raw, nil
	case strings.HasSuffix(text, " + 1"):
		n, err := strconv.Atoi(strings.TrimSuffix(text, " + 1"))
		return strconv.Itoa(n + 1), err
	case text == "false":
		return text, nil
	}
	if m := ofModel.FindStringSubmatch(text); m != nil {
		return gjson.GetBytes(call.ToolArguments, m[1]).Raw, nil
	}
	if m := ofResponse.FindStringSubmatch(text); m != nil {
		if !gjson.Valid(m[2]) {
			return "", fmt.Errorf("bound response is no JSON: %s", m[2])
		}
		value := gjson.Get(m[2], m[3])
		switch {
		case m[4] != "":
			return strconv.FormatBool(value.Exists() && value.Type == gjson.Null), nil
		case m[1] != "":
			return strconv.FormatBool(!value.Exists() || value.Type == gjson.Null), nil
		}
		return value.Raw, nil
	}
	return "", fmt.Errorf("cannot evaluate %q", text)
}

// newCall is a call of the node with these parameters (BASE is the service) on
// these input items.
func newCall(t testing.TB, base, parameters string, input ...string) *node.Call {
	t.Helper()
	if len(input) == 0 {
		input = []string{`{}`}
	}
	parameters = strings.ReplaceAll(parameters, "BASE", base)
	require.True(t, json.Valid([]byte(parameters)), "parameters: %s", parameters)
	var items workflow.Items
	for _, one := range input {
		items = append(items, workflow.Item{JSON: json.RawMessage(one)})
	}
	transport := &nethttp.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &node.Call{
		Node:           &workflow.Node{Name: "Http", Type: TypeRequest, TypeVersion: 4.2, Parameters: json.RawMessage(parameters)},
		IdempotencyKey: "key-1",
		Inputs:         []workflow.Items{items},
		Services: node.Services{
			Log: zaptest.NewLogger(t), Now: time.Now, HTTP: &nethttp.Client{Transport: transport}, Parameters: resolver{},
		},
	}
}

func execute(t testing.TB, call *node.Call) (workflow.Items, error) {
	t.Helper()
	result, err := Types()[0].Execute(context.Background(), call)
	if err != nil {
		return nil, err
	}
	require.Len(t, result.Outputs, 1)
	return result.Outputs[0], nil
}

// jsons are the items' json as one list, on one line.
func jsons(t testing.TB, items workflow.Items) string {
	t.Helper()
	list := make([]json.RawMessage, 0, len(items))
	for _, item := range items {
		list = append(list, item.JSON)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	require.NoError(t, e.Encode(list))
	return strings.TrimSpace(b.String())
}

// echoed sends one request to /echo and returns what arrived there.
func echoed(t testing.TB, call *node.Call) gjson.Result {
	t.Helper()
	items, err := execute(t, call)
	require.NoError(t, err)
	require.Len(t, items, 1)
	return gjson.ParseBytes(items[0].JSON)
}
