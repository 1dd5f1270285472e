package mail_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	mailnodes "github.com/reprise-engine/reprise/pkg/nodes/mail"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

const plainMail = `{"fromEmail":"Robot <robot@lab.test>","toEmail":"={{ $json.to }}","subject":"=Hello {{ $json.name }}","emailFormat":"text","text":"Grüße","options":{}}`

func TestSendMakesTheReceiptOfEachItem(t *testing.T) {
	box := (&mailbox{}).start(t)
	result := execute(t, mailCall(t, mailnodes.TypeSend, plainMail, box.credential(nil), `{"to":"a@x.test","name":"Ada"}`, `{"to":"Bo <b@x.test>, c@x.test","name":"Bo"}`))

	mails := box.received()
	require.Len(t, mails, 2)
	require.Equal(t, 1, box.sessions, "one connection for all items")
	require.Equal(t, "robot@lab.test", mails[0].from)
	require.Equal(t, []string{"b@x.test", "c@x.test"}, mails[1].to)
	first := read(t, mails[0].data)
	require.Equal(t, `"Robot" <robot@lab.test>`, first.header.Get("From"))
	require.Equal(t, "Hello Ada", first.header.Get("Subject"))
	require.Equal(t, "Tue, 01 Dec 2026 05:34:31 +0000", first.header.Get("Date"))
	require.Equal(t, "Grüße", strings.TrimSpace(first.leaves["text/plain"].content))
	require.NotContains(t, mails[0].data, "n8n")

	require.Len(t, result.Outputs[0], 2)
	out := object(t, result.Outputs[0][1].JSON)
	require.Equal(t, []any{"b@x.test", "c@x.test"}, out["accepted"])
	require.Equal(t, []any{}, out["rejected"])
	require.Equal(t, map[string]any{"from": "robot@lab.test", "to": []any{"b@x.test", "c@x.test"}}, out["envelope"])
	require.Equal(t, read(t, mails[1].data).header.Get("Message-Id"), out["messageId"])
	require.Contains(t, out["response"], "250 2.0.0 ")
	require.InDelta(t, len(mails[1].data), out["messageSize"], 2, "the last line's end is not counted")
	require.Equal(t, workflow.Paired(1), result.Outputs[0][1].PairedItem)
}

func TestMessageIDIsOfTheSliceAndItem(t *testing.T) {
	box := (&mailbox{}).start(t)
	id := func(key string, attempt int, items ...string) []string {
		call := mailCall(t, mailnodes.TypeSend, plainMail, box.credential(nil), items...)
		call.IdempotencyKey, call.Attempt = key, attempt
		var ids []string
		for _, item := range execute(t, call).Outputs[0] {
			ids = append(ids, object(t, item.JSON)["messageId"].(string))
		}
		return ids
	}
	first := id("e_1", 1, `{"to":"a@x.test"}`, `{"to":"a@x.test"}`)
	require.NotEqual(t, first[0], first[1])
	require.Regexp(t, `^<[0-9a-f]{32}@lab\.test>$`, first[0])
	require.Equal(t, first, id("e_1", 2, `{"to":"a@x.test"}`, `{"to":"a@x.test"}`))
	require.NotEqual(t, first[:1], id("e_2", 1, `{"to":"a@x.test"}`))
}

func TestFormats(t *testing.T) {
	for _, tt := range []struct {
		name       string
		version    float64
		parameters string
		kinds      []string
	}{
		{"2.1 defaults to HTML", 2.1, `{"html":"<b>x</b>","text":"x"}`, []string{"text/html"}},
		{"2 defaults to text", 2, `{"html":"<b>x</b>","text":"x"}`, []string{"text/plain"}},
		{"both", 2.1, `{"emailFormat":"both","html":"<b>x</b>","text":"x"}`, []string{"text/plain", "text/html"}},
		{"1 with both", 1, `{"html":"<b>x</b>","text":"x"}`, []string{"text/plain", "text/html"}},
		{"1 with text", 1, `{"text":"x"}`, []string{"text/plain"}},
		{"1 with nothing", 1, `{}`, []string{"text/plain"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			box := (&mailbox{}).start(t)
			call := mailCall(t, mailnodes.TypeSend, `{"fromEmail":"r@lab.test","toEmail":"a@x.test",`+tt.parameters[1:], box.credential(nil), `{}`)
			if tt.parameters == `{}` {
				call.Node.Parameters = []byte(`{"fromEmail":"r@lab.test","toEmail":"a@x.test"}`)
			}
			call.Node.TypeVersion = tt.version
			execute(t, call)
			got := read(t, box.only(t).data)
			require.Equal(t, tt.kinds, got.order)
			if html, ok := got.leaves["text/html"]; ok {
				require.Equal(t, "<b>x</b>", strings.TrimSpace(html.content))
			}
		})
	}
}

func TestOptions(t *testing.T) {
	for _, tt := range []struct {
		name       string
		version    float64
		parameters string
	}{
		{"options", 2.1, `{"fromEmail":"r@lab.test","toEmail":["a@x.test"],"html":"<img src=\"cid:logo\">","options":{
			"ccEmail":"c@x.test; a@x.test","bccEmail":"Dr. Bo L. <b@x.test>","replyTo":"back@lab.test","attachments":"data, logo"}}`},
		{"version 1 has them beside the others", 1, `{"fromEmail":"r@lab.test","toEmail":"a@x.test","html":"<img src=\"cid:logo\">",
			"ccEmail":"c@x.test, a@x.test","bccEmail":"b@x.test","attachments":"data,logo","options":{"replyTo":"back@lab.test"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			box := (&mailbox{}).start(t)
			call := mailCall(t, mailnodes.TypeSend, tt.parameters, box.credential(nil), `{}`)
			call.Node.TypeVersion = tt.version
			call.Inputs[0][0].Binary = map[string]workflow.Binary{
				"data": {FileName: "list.csv", MimeType: "text/csv\r\nX-Evil: 1", Data: base64.StdEncoding.EncodeToString([]byte("a,b"))},
				"logo": {MimeType: "image/png", Data: base64.StdEncoding.EncodeToString([]byte("png"))},
			}
			execute(t, call)
			m := box.only(t)
			require.Equal(t, []string{"a@x.test", "c@x.test", "b@x.test"}, m.to, "each once, with the hidden ones")
			require.NotContains(t, m.data, "b@x.test")
			require.NotContains(t, m.data, "X-Evil")
			got := read(t, m.data)
			require.Equal(t, "<back@lab.test>", got.header.Get("Reply-To"))
			logo := got.leaves["image/png"]
			require.Equal(t, []string{"<logo>"}, logo.header["Content-Id"])
			file := got.leaves["application/octet-stream"]
			require.Contains(t, file.header["Content-Disposition"][0], `attachment; filename="list.csv"`)
			require.Equal(t, base64.StdEncoding.EncodeToString([]byte("a,b")), strings.TrimSpace(file.content))
		})
	}
}

func TestAttachmentsThatAreNotThere(t *testing.T) {
	box := (&mailbox{}).start(t)
	parameters := strings.Replace(plainMail, `"options":{}`, `"options":{"attachments":"data"}`, 1)
	call := mailCall(t, mailnodes.TypeSend, parameters, box.credential(nil), `{"to":"a@x.test"}`)
	require.Equal(t, []engine.Hint{{Message: `Item 0 has no files, so "data" was not attached`}}, execute(t, call).Hints)
	for name, file := range map[string]workflow.Binary{"other": {Data: "eA=="}, "data": {ID: "kept elsewhere"}} {
		call.Inputs[0][0].Binary = map[string]workflow.Binary{name: file}
		_, err := call.Type.Execute(t.Context(), call)
		require.ErrorContains(t, err, "data")
	}
	require.Len(t, box.received(), 1)
}

func TestConnections(t *testing.T) {
	trusting := strings.Replace(plainMail, `"options":{}`, `"options":{"allowUnauthorizedCerts":true}`, 1)
	login := map[string]any{"user": "ada", "password": "s3cret-word"}
	for _, tt := range []struct {
		name       string
		box        *mailbox
		credential map[string]any
		parameters string
		encrypted  bool
		fails      string
	}{
		{name: "login without encryption on this machine", box: &mailbox{login: true}, credential: login},
		{name: "STARTTLS", box: &mailbox{login: true, tls: selfSigned(t)}, credential: login, parameters: trusting, encrypted: true},
		{name: "STARTTLS is not wanted", box: &mailbox{tls: selfSigned(t)}, credential: map[string]any{"disableStartTls": true}},
		{name: "TLS from the start", box: &mailbox{login: true, implicit: true, tls: selfSigned(t)}, credential: login, parameters: trusting, encrypted: true},
		{name: "STARTTLS with an unknown certificate", box: &mailbox{tls: selfSigned(t)}, fails: `its certificate is not trusted`},
		{name: "TLS with an unknown certificate", box: &mailbox{implicit: true, tls: selfSigned(t)}, fails: `set the option "Ignore SSL Issues"`},
		{name: "TLS where there is none", box: &mailbox{}, credential: map[string]any{"secure": true}, fails: "it does not speak TLS on this port"},
		{name: "wrong password", box: &mailbox{login: true}, credential: map[string]any{"user": "ada", "password": "wrong-word"},
			fails: "check user and password of the credential; the server said: 535 5.7.8 no such login as ada/[secret]"},
		{name: "no login offered", box: &mailbox{}, credential: login, fails: "the server offers no login"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			box := tt.box.start(t)
			if tt.parameters == "" {
				tt.parameters = plainMail
			}
			call := mailCall(t, mailnodes.TypeSend, tt.parameters, box.credential(tt.credential), `{"to":"a@x.test"}`)
			if tt.fails != "" {
				_, err := call.Type.Execute(t.Context(), call)
				var failure *engine.NodeError
				require.ErrorAs(t, err, &failure)
				require.Contains(t, failure.Message, tt.fails)
				require.Contains(t, failure.Message, box.listener.Addr().String())
				require.Equal(t, 0, *failure.ItemIndex)
				require.Empty(t, box.received())
				return
			}
			execute(t, call)
			require.Equal(t, tt.encrypted, box.only(t).encrypted)
		})
	}
}

func TestFailures(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	unreachable := &mailbox{listener: closed}
	require.NoError(t, closed.Close())
	for _, tt := range []struct {
		name string
		box  *mailbox
		code string
		want string
	}{
		{"refused recipient", (&mailbox{refused: map[string]bool{"a@x.test": true}}).start(t), "EENVELOPE", "The mail server does not accept the recipient a@x.test: 550 5.1.1 no such mailbox"},
		{"refused sender", (&mailbox{refuseFrom: true}).start(t), "EENVELOPE", "The mail server does not accept robot@lab.test as sender: 553 5.7.1 not your address"},
		{"refused mail", (&mailbox{refuseData: true}).start(t), "EMESSAGE", "The mail server does not accept the mail: 554 5.6.0 looks like spam"},
		{"unconfirmed", (&mailbox{hangUp: true}).start(t), "ECONNECTION", "it may have been sent. Its Message-ID is <"},
		{"unreachable", unreachable, "ECONNREFUSED", "cannot be reached: it refused the connection"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			call := mailCall(t, mailnodes.TypeSend, plainMail, tt.box.credential(nil), `{"to":"a@x.test"}`)
			_, err := call.Type.Execute(t.Context(), call)
			var failure *engine.NodeError
			require.ErrorAs(t, err, &failure)
			require.Contains(t, failure.Message, tt.want)
			require.Equal(t, tt.code, failure.HTTPCode)
			require.Equal(t, "NodeApiError", failure.Name)
		})
	}
}

func TestContinueGoesOnWithTheNextItem(t *testing.T) {
	box := (&mailbox{refused: map[string]bool{"a@x.test": true}}).start(t)
	call := mailCall(t, mailnodes.TypeSend, plainMail, box.credential(nil), `{"to":"a@x.test"}`, `{"to":"nobody"}`, `{"to":""}`, `{"to":"b@x.test"}`)
	call.Node.OnError = workflow.OnErrorContinue
	out := execute(t, call).Outputs[0]
	require.Len(t, out, 4)
	require.JSONEq(t, `{"error":"The mail server does not accept the recipient a@x.test: 550 5.1.1 no such mailbox"}`, string(out[0].JSON))
	require.JSONEq(t, `{"error":"\"nobody\" is no mail address (To Email)"}`, string(out[1].JSON))
	require.JSONEq(t, `{"error":"The mail has no recipient"}`, string(out[2].JSON))
	require.Equal(t, []any{"b@x.test"}, object(t, out[3].JSON)["accepted"])
	require.Equal(t, workflow.Paired(1), out[1].PairedItem)
}

func TestSomeRecipientsRefused(t *testing.T) {
	box := (&mailbox{refused: map[string]bool{"b@x.test": true}}).start(t)
	result := execute(t, mailCall(t, mailnodes.TypeSend, plainMail, box.credential(nil), `{"to":"a@x.test, b@x.test"}`))
	require.Equal(t, []string{"a@x.test"}, box.only(t).to)
	out := object(t, result.Outputs[0][0].JSON)
	require.Equal(t, []any{"b@x.test"}, out["rejected"])
	require.Equal(t, []engine.Hint{{Message: "The mail server did not accept the recipient b@x.test; the others were sent the mail"}}, result.Hints)
}

func TestHeadersCannotBeInjected(t *testing.T) {
	box := (&mailbox{}).start(t)
	execute(t, mailCall(t, mailnodes.TypeSend, plainMail, box.credential(nil), `{"to":"a@x.test","name":"x\r\nBcc: evil@x.test\r\n\r\nbody"}`))
	m := box.only(t)
	require.Equal(t, []string{"a@x.test"}, m.to)
	got := read(t, m.data)
	require.Empty(t, got.header.Get("Bcc"))
	require.Equal(t, "Hello x Bcc: evil@x.test body", got.header.Get("Subject"))

	call := mailCall(t, mailnodes.TypeSend, plainMail, box.credential(nil), `{"to":"a@x.test>\r\nRCPT TO:<evil@x.test"}`)
	_, err := call.Type.Execute(t.Context(), call)
	require.ErrorContains(t, err, "is no mail address")
}

func TestStoppedAttempt(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	require.NoError(t, err)
	defer silent.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if conn, err := silent.Accept(); err == nil {
			defer conn.Close()
			cancel()
			_, _ = conn.Read(make([]byte, 1)) // until the node hangs up
		}
	}()
	call := mailCall(t, mailnodes.TypeSend, plainMail, (&mailbox{listener: silent}).credential(nil), `{"to":"a@x.test"}`)
	_, err = call.Type.Execute(ctx, call)
	require.Equal(t, context.Canceled, err)
}

func TestConfigurationErrors(t *testing.T) {
	box := (&mailbox{}).start(t)
	for _, tt := range []struct {
		name, parameters, want string
		credential             map[string]any
	}{
		{name: "unknown operation", parameters: `{"operation":"read"}`, want: `The operation "read" is not known here`},
		{name: "unknown format", parameters: `{"emailFormat":"rtf"}`, want: `The email format "rtf" is not known here`},
		{name: "no sender", parameters: `{"toEmail":"a@x.test"}`, want: "The mail needs one sender and has 0"},
		{name: "no host", parameters: plainMail, credential: map[string]any{"host": ""}, want: "names no host"},
		{name: "bad port", parameters: plainMail, credential: map[string]any{"port": "smtp"}, want: `has the port "smtp"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			call := mailCall(t, mailnodes.TypeSend, tt.parameters, box.credential(tt.credential), `{"to":"a@x.test"}`)
			_, err := call.Type.Execute(t.Context(), call)
			var failure *engine.NodeError
			require.ErrorAs(t, err, &failure)
			require.Contains(t, failure.Message, tt.want)
			require.True(t, failure.NotRetryable)
		})
	}
	call := mailCall(t, mailnodes.TypeSend, plainMail, nil, `{"to":"a@x.test"}`)
	call.Node.Credentials = nil
	_, err := call.Type.Execute(t.Context(), call)
	require.ErrorContains(t, err, "has no mail server")
}

func TestTool(t *testing.T) {
	box := (&mailbox{}).start(t)
	const parameters = `{"fromEmail":"r@lab.test","toEmail":"={{ $fromAI('To', 'who gets it') }}","emailFormat":"text","text":"hi"}`
	call := mailCall(t, mailnodes.TypeSend+"Tool", parameters, box.credential(nil), `{}`)
	face, err := call.Type.Describe(t.Context(), call)
	require.NoError(t, err)
	require.Equal(t, "Node", face.Name)
	require.Equal(t, "Sends an e-mail.", face.Description)
	require.Contains(t, string(face.Schema), `"who gets it"`)

	call.Parameters = nodestest.Resolver{Values: map[string][]json.RawMessage{"={{ $fromAI('To', 'who gets it') }}": {json.RawMessage(`"a@x.test"`)}}}
	require.Equal(t, []any{"a@x.test"}, object(t, execute(t, call).Outputs[0][0].JSON)["accepted"])
	require.Equal(t, []string{"a@x.test"}, box.only(t).to)
}
