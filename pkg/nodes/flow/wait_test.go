package flow

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// now is noon in UTC, one hour later in Berlin.
var now = time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)

func call(t *node.Type, version float64, parameters string, items ...string) *node.Call {
	c := nodestest.Call(t, parameters, nodestest.Items(items...))
	c.Node.TypeVersion = version
	c.Now = func() time.Time { return now }
	c.Execution.ID = "parent"
	c.Workflow.ID = "w"
	return c
}

func failureOf(t *testing.T, result *node.Result, err error) *engine.NodeError {
	t.Helper()
	require.Nil(t, result)
	var failure *engine.NodeError
	require.ErrorAs(t, err, &failure)
	return failure
}

// requireItems compares items as JSON, lineage and metadata included.
func requireItems(t *testing.T, want string, got workflow.Items) {
	t.Helper()
	raw, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(t, want, string(raw))
}

const twoItems = `[{"json":{"n":1,"s":"minutes"},"pairedItem":{"item":0}},{"json":{"n":2},"pairedItem":{"item":1}}]`

func TestWaitForTime(t *testing.T) {
	berlin := "Europe/Berlin"
	for name, row := range map[string]struct {
		version            float64
		parameters, zone   string
		after              time.Duration
		wantMessage, wantD string
	}{
		"default of 1.1":            {version: 1.1, parameters: `{}`, after: 5 * time.Second},
		"default of 1":              {version: 1, parameters: `{}`, after: time.Hour},
		"unit alone":                {version: 1.1, parameters: `{"unit":"minutes"}`, after: 5 * time.Minute},
		"amount alone":              {version: 1, parameters: `{"amount":3}`, after: 3 * time.Hour},
		"days":                      {version: 1.1, parameters: `{"amount":2,"unit":"days"}`, after: 48 * time.Hour},
		"fraction":                  {version: 1.1, parameters: `{"amount":0.5}`, after: 500 * time.Millisecond},
		"less than a millisecond":   {version: 1.1, parameters: `{"amount":0.0001}`, after: time.Millisecond},
		"text and first item":       {version: 1.1, parameters: `{"amount":"={{ $json.n }}","unit":"={{ $json.s }}"}`, after: time.Minute},
		"zero":                      {version: 1.1, parameters: `{"amount":0}`},
		"negative":                  {version: 1.1, parameters: `{"amount":-3,"unit":"days"}`},
		"no number":                 {version: 1.1, parameters: `{"amount":"soon"}`, wantMessage: `The wait amount "soon" is not a number`, wantD: "amount"},
		"NaN":                       {version: 1.1, parameters: `{"amount":"NaN"}`, wantMessage: `The wait amount "NaN" is not a number`, wantD: "amount"},
		"unit unknown":              {version: 1.1, parameters: `{"unit":"weeks"}`, wantMessage: `The wait unit "weeks" is unknown`, wantD: "days"},
		"absurd":                    {version: 1.1, parameters: `{"amount":1e300,"unit":"days"}`, wantMessage: `The wait of 1e300 days is longer than 100 years`},
		"infinite":                  {version: 1.1, parameters: `{"amount":"+Inf"}`, wantMessage: `The wait of +Inf seconds is longer than 100 years`},
		"moment":                    {version: 1.1, parameters: `{"resume":"specificTime","dateTime":"2026-01-15T12:30:00"}`, after: 30 * time.Minute},
		"moment in the zone":        {version: 1.1, parameters: `{"resume":"specificTime","dateTime":"2026-01-15T13:30:00"}`, zone: berlin, after: 30 * time.Minute},
		"moment with offset":        {version: 1.1, parameters: `{"resume":"specificTime","dateTime":"2026-01-15T14:00:00+01:00"}`, zone: "America/New_York", after: time.Hour},
		"moment with a space":       {version: 1.1, parameters: `{"resume":"specificTime","dateTime":"2026-01-15 13:00"}`, after: time.Hour},
		"moment of an expression":   {version: 1.1, parameters: `{"resume":"specificTime","dateTime":"=2026-01-15T13:0{{ $json.n }}:00.000Z"}`, after: time.Hour + time.Minute},
		"milliseconds":              {version: 1.1, parameters: `{"resume":"specificTime","dateTime":1768482000000}`, after: time.Hour},
		"moment in the past":        {version: 1.1, parameters: `{"resume":"specificTime","dateTime":"2020-01-01"}`},
		"right now":                 {version: 1.1, parameters: `{"resume":"specificTime","dateTime":"2026-01-15T12:00:00Z"}`},
		"no moment":                 {version: 1.1, parameters: `{"resume":"specificTime"}`, wantMessage: "There is no date to wait for", wantD: "dateTime"},
		"bad moment":                {version: 1.1, parameters: `{"resume":"specificTime","dateTime":"tomorrow"}`, wantMessage: `"tomorrow" is not a date`, wantD: "ISO 8601"},
		"bad zone":                  {version: 1.1, parameters: `{"resume":"specificTime","dateTime":"2030-01-01"}`, zone: "Moon/Sea", wantMessage: `The workflow's time zone "Moon/Sea" is unknown`, wantD: "IANA"},
		"form behind a header":      {version: 1.1, parameters: `{"resume":"form","incomingAuthentication":"headerAuth"}`, wantMessage: "A form takes basic authentication or none", wantD: "Basic Auth"},
		"form without a credential": {version: 1.1, parameters: `{"resume":"form","incomingAuthentication":"jwtAuth"}`, wantMessage: "There is no credential to check callers against", wantD: "jwtAuth"},
		"form answered at no time":  {version: 1.1, parameters: `{"resume":"form","responseMode":"never"}`, wantMessage: `The response mode "never" is unknown`, wantD: "onReceived"},
		"form with a strange field": {version: 1.1, parameters: `{"resume":"form","formFields":{"values":[{"fieldType":"smell"}]}}`, wantMessage: `field 1 has the unknown type "smell"`},
		"unknown kind":              {version: 1.1, parameters: `{"resume":"moonrise"}`, wantMessage: `"moonrise" is not something to wait for`, wantD: "webhook"},
		"expression that is broken": {version: 1.1, parameters: `{"amount":"={{ broken }}"}`, wantMessage: `nodestest cannot evaluate " broken "`, wantD: "parameter amount"},
	} {
		t.Run(name, func(t *testing.T) {
			c := call(Wait(), row.version, row.parameters, `{"n":1,"s":"minutes"}`, `{"n":2}`)
			c.Node.Credentials = map[string]workflow.CredentialRef{"httpHeaderAuth": {ID: "1"}}
			c.Workflow.Timezone = row.zone
			result, err := Wait().Execute(t.Context(), c)
			if row.wantMessage != "" {
				failure := failureOf(t, result, err)
				require.Equal(t, row.wantMessage, failure.Message)
				require.Contains(t, failure.Description, row.wantD)
				return
			}
			require.NoError(t, err)
			if row.after == 0 {
				require.Nil(t, result.Wait)
				requireItems(t, twoItems, result.Outputs[0])
				return
			}
			require.Equal(t, &engine.Wait{Kind: engine.WaitTime, Until: now.Add(row.after).UnixMilli()}, result.Wait)
			require.Nil(t, result.Outputs)

			c.Resumption = &engine.Resumption{Kind: engine.WaitTime, Expired: true}
			c.Now = func() time.Time { panic("the second call needs no clock") }
			result, err = Wait().Execute(t.Context(), c)
			require.NoError(t, err)
			require.Nil(t, result.Wait)
			requireItems(t, twoItems, result.Outputs[0])
		})
	}
}

func TestWaitForForm(t *testing.T) {
	c := call(Wait(), 1.1, `{"resume":"form","formTitle":"=For {{ $json.n }}","formDescription":"about","responseMode":"lastNode","limitWaitTime":true,
		"formFields":{"values":[{"fieldLabel":"Name","requiredField":true}]},"options":{"buttonLabel":"Go","respondWithOptions":{"values":{"formSubmittedText":"Well"}}}}`,
		`{"n":1,"s":"minutes"}`, `{"n":2}`)
	c.Workflow.Timezone = "Europe/Berlin"
	result, err := Wait().Execute(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, now.Add(time.Hour).UnixMilli(), result.Wait.Until)
	require.True(t, result.Wait.Webhook.Linked)
	require.JSONEq(t, `{"title":"For 1","description":"about","button":"Go","zone":"Europe/Berlin","fields":[{"name":"Name","label":"Name","type":"text","required":true}],
		"after":{"mode":"lastNode","with":"text","text":"Well"}}`, string(result.Wait.Webhook.Form))

	c.Resumption = &engine.Resumption{Kind: engine.WaitWebhook, Data: json.RawMessage(`{"json":{"Name":"Ann"},"binary":{"f":{"mimeType":"text/plain","data":"eA=="}}}`)}
	result, err = Wait().Execute(t.Context(), c)
	require.NoError(t, err)
	requireItems(t, `[{"json":{"Name":"Ann"},"binary":{"f":{"mimeType":"text/plain","data":"eA=="}},"pairedItem":{"item":0}}]`, result.Outputs[0])
	c.Resumption = &engine.Resumption{Kind: engine.WaitWebhook, Expired: true}
	result, err = Wait().Execute(t.Context(), c)
	require.NoError(t, err)
	requireItems(t, twoItems, result.Outputs[0])
}

func TestWaitForWebhook(t *testing.T) {
	started := engine.WebhookResponse{
		Status: 200, Body: `{"message":"Workflow was started"}`,
		Headers: map[string]string{"Content-Type": "application/json; charset=utf-8"},
	}
	answer := func(status int, contentType, body string) engine.WebhookResponse {
		return engine.WebhookResponse{Status: status, Headers: map[string]string{"Content-Type": contentType}, Body: body}
	}
	for name, row := range map[string]struct {
		parameters string
		want       engine.WebhookWait
		until      time.Duration
	}{
		"defaults":             {parameters: `{}`, want: engine.WebhookWait{Method: "GET", Response: started}},
		"method and suffix":    {parameters: `"httpMethod":"POST","options":{"webhookSuffix":"/done/{{x}}/"}`, want: engine.WebhookWait{Method: "POST", Suffix: "done/{{x}}", Response: started}},
		"suffix per execution": {parameters: `"options":{"webhookSuffix":"=s{{ $json.n }}"}`, want: engine.WebhookWait{Method: "GET", Suffix: "s1", Response: started}},
		"text":                 {parameters: `"responseCode":202,"options":{"responseData":"<b>thanks</b>"}`, want: engine.WebhookWait{Method: "GET", Response: answer(202, "text/plain; charset=utf-8", "<b>thanks</b>")}},
		"json":                 {parameters: `"options":{"responseData":"{\"ok\":true}"}`, want: engine.WebhookWait{Method: "GET", Response: answer(200, "application/json; charset=utf-8", `{"ok":true}`)}},
		"headers": {parameters: `"options":{"responseData":"x","responseHeaders":{"entries":[{"name":"content-type","value":"text/html"},{"name":"x-n","value":"={{ $json.n }}!"}]}}`,
			want: engine.WebhookWait{Method: "GET", Response: engine.WebhookResponse{Status: 200, Body: "x", Headers: map[string]string{"Content-Type": "text/html", "X-N": "1!"}}}},
		"no body":        {parameters: `"responseCode":204,"options":{"noResponseBody":true}`, want: engine.WebhookWait{Method: "GET", Response: engine.WebhookResponse{Status: 204, Headers: map[string]string{}}}},
		"code of option": {parameters: `"options":{"responseCode":{"values":{"responseCode":"customCode","customCode":418}},"noResponseBody":true}`, want: engine.WebhookWait{Method: "GET", Response: engine.WebhookResponse{Status: 418, Headers: map[string]string{}}}},
		"last node":      {parameters: `"responseMode":"lastNode"`, want: engine.WebhookWait{Method: "GET", AfterEnd: true, Response: engine.WebhookResponse{Status: 200, Headers: map[string]string{}}}},
		"limit, default": {parameters: `"limitWaitTime":true`, want: engine.WebhookWait{Method: "GET", Response: started}, until: time.Hour},
		"limit":          {parameters: `"limitWaitTime":true,"resumeAmount":90,"resumeUnit":"seconds"`, want: engine.WebhookWait{Method: "GET", Response: started}, until: 90 * time.Second},
		"limit at":       {parameters: `"limitWaitTime":true,"limitType":"atSpecifiedTime","maxDateAndTime":"2026-01-16"`, want: engine.WebhookWait{Method: "GET", Response: started}, until: 12 * time.Hour},
		"limit is off":   {parameters: `"limitWaitTime":false,"resumeAmount":"bad"`, want: engine.WebhookWait{Method: "GET", Response: started}},
	} {
		t.Run(name, func(t *testing.T) {
			parameters := `{"resume":"webhook",` + row.parameters + `}`
			if row.parameters == `{}` {
				parameters = `{"resume":"webhook"}`
			}
			c := call(Wait(), 1.1, parameters, `{"n":1}`, `{"n":2}`)
			result, err := Wait().Execute(t.Context(), c)
			require.NoError(t, err)
			want := &engine.Wait{Kind: engine.WaitWebhook, Webhook: &row.want}
			if row.until != 0 {
				want.Until = now.Add(row.until).UnixMilli()
			}
			require.Equal(t, want, result.Wait)

			c.Resumption = &engine.Resumption{Kind: engine.WaitWebhook, Data: json.RawMessage(`{"headers":{},"params":{},"query":{},"body":{"resumed":"yes"}}`)}
			result, err = Wait().Execute(t.Context(), c)
			require.NoError(t, err)
			requireItems(t, `[{"json":{"headers":{},"params":{},"query":{},"body":{"resumed":"yes"}},"pairedItem":{"item":0}}]`, result.Outputs[0])

			c.Resumption = &engine.Resumption{Kind: engine.WaitWebhook, Expired: true}
			result, err = Wait().Execute(t.Context(), c)
			require.NoError(t, err)
			requireItems(t, `[{"json":{"n":1},"pairedItem":{"item":0}},{"json":{"n":2},"pairedItem":{"item":1}}]`, result.Outputs[0])
		})
	}
}

func TestWaitForCallers(t *testing.T) {
	all := map[string]workflow.CredentialRef{"httpBasicAuth": {ID: "1", Name: "b"}, "httpHeaderAuth": {ID: "2", Name: "h"}, "jwtAuth": {ID: "3", Name: "j"}}
	for parameters, want := range map[string]*engine.Callers{
		`{"resume":"webhook"}`: nil,
		`{"resume":"form"}`:    nil,
		`{"resume":"webhook","incomingAuthentication":"none"}`:       nil,
		`{"resume":"webhook","incomingAuthentication":"basicAuth"}`:  {Type: "httpBasicAuth", Credential: all["httpBasicAuth"]},
		`{"resume":"webhook","incomingAuthentication":"headerAuth"}`: {Type: "httpHeaderAuth", Credential: all["httpHeaderAuth"]},
		`{"resume":"webhook","incomingAuthentication":"jwtAuth"}`:    {Type: "jwtAuth", Credential: all["jwtAuth"]},
		`{"resume":"form","incomingAuthentication":"basicAuth"}`:     {Type: "httpBasicAuth", Credential: all["httpBasicAuth"]},
	} {
		c := call(Wait(), 1.1, parameters, `{}`)
		c.Node.Credentials = all
		result, err := Wait().Execute(t.Context(), c)
		require.NoError(t, err, parameters)
		require.Equal(t, want, result.Wait.Webhook.Callers, parameters)
	}
}

func TestWaitForWebhookRefused(t *testing.T) {
	for name, row := range map[string]struct{ parameters, message string }{
		"response node":  {`"responseMode":"responseNode"`, "Answering with a Respond to Webhook node is not supported"},
		"response mode":  {`"responseMode":"x"`, `The response mode "x" is unknown`},
		"response data":  {`"responseMode":"lastNode","responseData":"firstEntryBinary"`, `The response data "firstEntryBinary" is not supported`},
		"no credential":  {`"incomingAuthentication":"basicAuth"`, "There is no credential to check callers against"},
		"authentication": {`"incomingAuthentication":"magic"`, `The authentication "magic" is unknown`},
		"addresses":      {`"options":{"ipWhitelist":"10.0.0.1"}`, "Limiting resume calls to IP addresses is not supported"},
		"bots":           {`"options":{"ignoreBots":true}`, "Ignoring bots in resume calls is not supported"},
		"method":         {`"httpMethod":"TRACE"`, `The HTTP method "TRACE" is not supported`},
		"status":         {`"responseCode":99`, "99 is not a response code"},
		"header name":    {`"options":{"responseHeaders":{"entries":[{"name":"a b","value":"x"}]}}`, `The response header "a b" is not valid`},
		"header value":   {`"options":{"responseHeaders":{"entries":[{"name":"a","value":"x\r\nSet-Cookie: y"}]}}`, `The response header "a" is not valid`},
		"limit type":     {`"limitWaitTime":true,"limitType":"never"`, `"never" is not a limit of a wait`},
		"limit's amount": {`"limitWaitTime":true,"resumeAmount":"x"`, `The wait amount "x" is not a number`},
		"limit's date":   {`"limitWaitTime":true,"limitType":"atSpecifiedTime"`, "There is no date to wait for"},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := Wait().Execute(t.Context(), call(Wait(), 1.1, `{"resume":"webhook",`+row.parameters+`}`, `{}`))
			require.Equal(t, row.message, failureOf(t, result, err).Message)
		})
	}
	c := call(Wait(), 1.1, `{"resume":"webhook"}`, `{"n":1}`)
	c.Resumption = &engine.Resumption{Kind: engine.WaitWebhook}
	result, err := Wait().Execute(t.Context(), c)
	require.NoError(t, err)
	requireItems(t, `[{"json":{},"pairedItem":{"item":0}}]`, result.Outputs[0])

	result, err = Wait().Execute(t.Context(), call(Wait(), 1.1, `{"resume":"webhook","limitWaitTime":true,"resumeAmount":0}`, `{"n":1}`))
	require.NoError(t, err)
	requireItems(t, `[{"json":{"n":1},"pairedItem":{"item":0}}]`, result.Outputs[0])
}
