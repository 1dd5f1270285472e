package web_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/web"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// plain gives parameters as they are.
type plain struct{}

func (plain) Resolve(_ context.Context, _ *node.Call, _ int, raw json.RawMessage) (json.RawMessage, error) {
	return raw, nil
}

func callOf(parameters string, items ...workflow.Item) *node.Call {
	return &node.Call{
		Node: &workflow.Node{Name: "N", Parameters: json.RawMessage(parameters)}, Inputs: []workflow.Items{items},
		Services: node.Services{Parameters: plain{}},
	}
}

func TestRespond(t *testing.T) {
	for name, test := range map[string]struct {
		parameters, body, kind, problem string
	}{
		"first":             {`{}`, `{"n":1}`, "application/json; charset=utf-8", ""},
		"first under a key": {`{"options":{"responseKey":"k"}}`, `{"k":{"n":1}}`, "application/json; charset=utf-8", ""},
		"text":              {`{"respondWith":"text","responseBody":"hi"}`, "hi", "text/html; charset=utf-8", ""},
		"json text":         {`{"respondWith":"json","responseBody":"{ \"a\" : [1, 2] }"}`, `{"a":[1,2]}`, "application/json; charset=utf-8", ""},
		"own type":          {`{"respondWith":"text","responseBody":"<a/>","options":{"responseHeaders":{"entries":[{"name":"content-type","value":"text/xml"}]}}}`, "<a/>", "text/xml", ""},
		"bad json":          {`{"respondWith":"json","responseBody":"{"}`, "", "", "Invalid JSON"},
		"bad code":          {`{"options":{"responseCode":99}}`, "", "", "99 is not a response code"},
		"split header":      {`{"options":{"responseHeaders":{"entries":[{"name":"X","value":"a\r\nb: c"}]}}}`, "", "", "header"},
		"split address":     {`{"respondWith":"redirect","redirectURL":"https://a\r\nb: c"}`, "", "", "redirect URL"},
		"no file":           {`{"respondWith":"binary"}`, "", "", "binary data"},
		"another kind":      {`{"respondWith":"smoke"}`, "", "", "smoke"},
		"unsigned":          {`{"respondWith":"jwt","payload":"{}"}`, "", "", "credential"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := web.Respond().Execute(t.Context(), callOf(test.parameters, workflow.Item{JSON: []byte(`{"n":1}`)}))
			if test.problem != "" {
				require.ErrorContains(t, err, test.problem)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.body, r.Response.Body)
			require.Equal(t, test.kind, r.Response.Headers["Content-Type"])
			require.Equal(t, workflow.Items{{JSON: []byte(`{"n":1}`), PairedItem: workflow.Paired(0)}}, r.Outputs[0])
		})
	}
}

func TestRespondWithToken(t *testing.T) {
	call := callOf(`{"respondWith":"jwt","payload":"{\"sub\":\"ann\"}"}`, workflow.Item{JSON: []byte(`{}`)})
	call.Node.Credentials = map[string]workflow.CredentialRef{"jwtAuth": {ID: "j"}}
	call.Credentials = func(context.Context, string, workflow.CredentialRef) (map[string]any, error) {
		return map[string]any{"secret": "the-secret-of-the-test", "algorithm": "HS384"}, nil
	}
	r, err := web.Respond().Execute(t.Context(), call)
	require.NoError(t, err)
	claims := jwt.MapClaims{}
	_, err = jwt.ParseWithClaims(gjson.Get(r.Response.Body, "token").Str, claims, func(*jwt.Token) (any, error) { return []byte("the-secret-of-the-test"), nil },
		jwt.WithValidMethods([]string{"HS384"}))
	require.NoError(t, err)
	require.Equal(t, "ann", claims["sub"])
	call.Credentials = func(context.Context, string, workflow.CredentialRef) (map[string]any, error) {
		return map[string]any{"privateKey": "not-a-key-but-secret", "algorithm": "RS256"}, nil
	}
	_, err = web.Respond().Execute(t.Context(), call)
	require.Error(t, err)
	require.NotContains(t, err.Error(), "secret")
}

func TestSecondOutputHasTheAnswer(t *testing.T) {
	n := &workflow.Node{Parameters: json.RawMessage(`{"enableResponseOutput":true}`)}
	require.Equal(t, 2, web.Respond().Outputs(n))
	r, err := web.Respond().Execute(t.Context(), callOf(`{"enableResponseOutput":true}`, workflow.Item{JSON: []byte(`{"n":1}`)}))
	require.NoError(t, err)
	require.Len(t, r.Outputs, 2)
	require.JSONEq(t, `{"body":{"n":1},"headers":{"Content-Type":"application/json; charset=utf-8"},"statusCode":200}`, string(r.Outputs[1][0].JSON))
}

func TestFormWaitsAndGoesOn(t *testing.T) {
	call := callOf(`{"defineForm":"json","jsonOutput":"[{\"fieldLabel\":\"A\"}]","options":{"buttonLabel":"Next"}}`)
	r, err := web.Form().Execute(t.Context(), call)
	require.NoError(t, err)
	require.Equal(t, engine.WaitWebhook, r.Wait.Kind)
	require.JSONEq(t, `{"button":"Next","fields":[{"name":"A","label":"A","type":"text"}]}`, string(r.Wait.Webhook.Form))
	call.Resumption = &engine.Resumption{Kind: engine.WaitWebhook, Data: []byte(`{"json":{"A":"b"}}`)}
	r, err = web.Form().Execute(t.Context(), call)
	require.NoError(t, err)
	require.JSONEq(t, `{"A":"b"}`, string(r.Outputs[0][0].JSON))
	_, err = web.Form().Execute(t.Context(), callOf(`{"formFields":{"values":[{"fieldLabel":"A","fieldType":"hologram"}]}}`))
	require.ErrorContains(t, err, "hologram")
}

func TestFormGivesUp(t *testing.T) {
	call := callOf(`{"limitWaitTime":true,"resumeAmount":2,"resumeUnit":"minutes"}`, workflow.Item{JSON: []byte(`{"given":1}`)})
	now := time.UnixMilli(1_700_000_000_000)
	call.Now = func() time.Time { return now }
	r, err := web.Form().Execute(t.Context(), call)
	require.NoError(t, err)
	require.Equal(t, now.Add(2*time.Minute).UnixMilli(), r.Wait.Until)
	call.Resumption = &engine.Resumption{Kind: engine.WaitWebhook, Expired: true}
	r, err = web.Form().Execute(t.Context(), call)
	require.NoError(t, err)
	require.JSONEq(t, `{"given":1}`, string(r.Outputs[0][0].JSON))
}

func TestFormEnds(t *testing.T) {
	item := workflow.Item{JSON: []byte(`{}`), Binary: map[string]workflow.Binary{"data": {MimeType: "text/csv", FileName: "a.csv", Data: "YQ=="}}}
	for with, check := range map[string]func(*engine.WebhookResponse){
		`"text","completionTitle":"<i>","completionMessage":"m"`: func(r *engine.WebhookResponse) { require.Contains(t, r.Body, "&lt;i&gt;") },
		`"showText","responseText":"raw"`:                        func(r *engine.WebhookResponse) { require.Equal(t, "raw", r.Body) },
		`"redirect","redirectUrl":"https://a.example"`:           func(r *engine.WebhookResponse) { require.Equal(t, "https://a.example", r.Headers["Location"]) },
		`"returnBinary"`: func(r *engine.WebhookResponse) { require.Equal(t, "a.csv", r.Binary.FileName) },
	} {
		r, err := web.Form().Execute(t.Context(), callOf(`{"operation":"completion","respondWith":`+with+`}`, item))
		require.NoError(t, err)
		check(r.Response)
		require.Len(t, r.Outputs[0], 1)
	}
	_, err := web.Form().Execute(t.Context(), callOf(`{"operation":"completion","respondWith":"returnBinary"}`))
	require.ErrorContains(t, err, "does not exist")
}

func TestFilesOfAForm(t *testing.T) {
	page := &web.Page{Fields: []web.Field{
		{Name: "One file", Label: "One file", Type: "file", Required: true, Accept: "image/*, .pdf"},
		{Name: "many", Label: "many", Type: "file", Multiple: true},
	}}
	file := func(input, name, kind string) web.Upload {
		return web.Upload{Input: input, File: workflow.Binary{FileName: name, MimeType: kind}, Bytes: 3}
	}
	_, problem := page.Item(nil, nil, time.Now())
	require.Contains(t, problem, "needs a file")
	_, problem = page.Item(nil, []web.Upload{file("field-0", "a.exe", "application/x-dosexec")}, time.Now())
	require.Contains(t, problem, "a.exe")
	_, problem = page.Item(nil, []web.Upload{file("field-0", "a.png", "image/png"), file("field-0", "b.png", "image/png")}, time.Now())
	require.Contains(t, problem, "one file")
	item, problem := page.Item(nil, []web.Upload{file("field-0", "a.PDF", "x/y"), file("field-1", "c", "d/e"), file("field-1", "f", "g/h"), file("field-9", "stray", "g/h")}, time.Now())
	require.Empty(t, problem)
	require.Len(t, item.Binary, 3)
	require.Equal(t, "f", item.Binary["many_1"].FileName)
	require.Equal(t, "a.PDF", item.Binary["One_file"].FileName)
	require.Equal(t, `{"filename":"c","mimetype":"d/e","size":3}`, gjson.GetBytes(item.JSON, "many.0").Raw)
}
