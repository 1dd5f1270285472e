package imap

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/imap/imaptest"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// post is a mail server on loopback with one mailbox, and what polls of it have noted.
type post struct {
	*imaptest.Server
	t     *testing.T
	notes []json.RawMessage
}

func newPost(t *testing.T) *post {
	t.Helper()
	return &post{Server: imaptest.Start(t), t: t}
}

func (p *post) deliver(text string) {
	p.t.Helper()
	p.Deliver(p.t, text)
}

func letterOf(subject string) string {
	return "From: Bob <bob@example.com>\nTo: ann@example.com\nSubject: " + subject + "\nDate: Tue, 10 Jun 2025 04:00:00 +0200\nMessage-ID: <1@example.com>\n" +
		"MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n\nHello\n"
}

func (p *post) attempt(key, mode, parameters string) (*node.Result, error) {
	call := nodestest.Call(Types()[0], parameters)
	call.Node.Credentials = map[string]workflow.CredentialRef{"imap": {Name: "Post"}}
	call.Credentials = func(context.Context, string, workflow.CredentialRef) (map[string]any, error) {
		return p.Credential(), nil
	}
	call.Execution.Mode, call.IdempotencyKey, call.Workflow.ID = mode, key, "w"
	call.LoadMemory = func(_ context.Context, _ string, n int) ([]json.RawMessage, error) {
		return p.notes[max(0, len(p.notes)-n):], nil
	}
	return call.Type.Execute(p.t.Context(), call)
}

func subjects(r *node.Result) []string {
	if r.Outputs == nil {
		return nil
	}
	list := []string{}
	for _, item := range r.Outputs[0] {
		list = append(list, gjson.GetBytes(item.JSON, "subject").Str)
	}
	return list
}

func (p *post) poll(key, parameters string) []string {
	p.t.Helper()
	r, err := p.attempt(key, "trigger", parameters)
	require.NoError(p.t, err)
	for _, m := range r.Memory {
		p.notes = append(p.notes, m.Messages...)
	}
	return subjects(r)
}

func TestMailsAreGivenOutOnce(t *testing.T) {
	p := newPost(t)
	p.deliver(letterOf("one"))
	p.deliver(letterOf("two"))
	require.Equal(t, []string{"one", "two"}, p.poll("1", `{}`))
	require.Equal(t, 2, p.Unseen(t), "they are not marked before what they began is stored")
	p.deliver(letterOf("three"))
	require.Equal(t, []string{"three"}, p.poll("2", `{}`))
	require.Equal(t, 1, p.Unseen(t))
	require.Nil(t, p.poll("3", `{}`))
	require.Zero(t, p.Unseen(t))
	notes := len(p.notes)
	require.Nil(t, p.poll("4", `{}`))
	require.Len(t, p.notes, notes, "nothing is noted when nothing changes")

	r, err := p.attempt("hand", "manual", `{"options":{"customEmailConfig":"[\"ALL\"]"}}`)
	require.NoError(t, err)
	require.Equal(t, []string{"three"}, subjects(r), "who tries the workflow gets the latest mail")
	require.Empty(t, r.Memory)
}

// A run that is repeated though its note was stored gives out the mails that the note names, also
// when somebody has read them meanwhile.
func TestMailsAreNotLostWithTheirResult(t *testing.T) {
	p := newPost(t)
	p.deliver(letterOf("one"))
	require.Equal(t, []string{"one"}, p.poll("1", `{}`))
	p.deliver(letterOf("two"))
	again, err := p.attempt("1", "trigger", `{}`)
	require.NoError(t, err)
	require.Equal(t, []string{"one"}, subjects(again))
	require.Equal(t, []string{"two"}, p.poll("2", `{}`))
	require.Equal(t, 1, p.Unseen(t))
	again, err = p.attempt("2", "trigger", `{}`)
	require.NoError(t, err)
	require.Equal(t, []string{"two"}, subjects(again))
}

func TestMailsThatStayUnread(t *testing.T) {
	for _, onlyNew := range []bool{true, false} {
		t.Run(fmt.Sprint("only new ", onlyNew), func(t *testing.T) {
			p := newPost(t)
			parameters := fmt.Sprintf(`{"postProcessAction":"nothing","options":{"trackLastMessageId":%v}}`, onlyNew)
			p.deliver(letterOf("one"))
			require.Equal(t, []string{"one"}, p.poll("1", parameters))
			require.Nil(t, p.poll("2", parameters), "not again although it matches")
			p.deliver(letterOf("two"))
			require.Equal(t, []string{"two"}, p.poll("3", parameters))
			require.Nil(t, p.poll("4", parameters))
			require.Equal(t, 2, p.Unseen(t))
		})
	}
}

// A mailbox that was made anew numbers its mails anew.
func TestMailboxIsMadeAnew(t *testing.T) {
	p := newPost(t)
	p.deliver(letterOf("one"))
	p.deliver(letterOf("two"))
	require.Len(t, p.poll("1", `{}`), 2)
	require.NoError(t, p.Delete("INBOX"))
	require.NoError(t, p.Create("INBOX", nil))
	p.deliver(letterOf("other"))
	require.Equal(t, []string{"other"}, p.poll("2", `{}`))
	require.Nil(t, p.poll("3", `{}`))
}

func TestManyMailsComeInParts(t *testing.T) {
	p := newPost(t)
	for n := range maxMails + 3 {
		p.deliver(letterOf(fmt.Sprint(n)))
	}
	require.Len(t, p.poll("1", `{}`), maxMails)
	require.Equal(t, []string{"50", "51", "52"}, p.poll("2", `{}`))
}

const mixed = `From: =?utf-8?q?J=C3=BCrgen?= <j@example.com>
To: Ann <ann@example.com>, c@example.com
Subject: =?iso-8859-1?q?Gr=FC=DFe?=
Date: Tue, 10 Jun 2025 04:00:00 +0200
Message-ID: <2@example.com>
X-Custom: yes
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="outer"

--outer
Content-Type: multipart/alternative; boundary="inner"

--inner
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

Sch=F6n
--inner
Content-Type: text/html; charset=utf-8

<b>Schön</b>
--inner--
--outer
Content-Type: application/pdf
Content-Disposition: attachment; filename="../a b.pdf"
Content-Transfer-Encoding: base64

JVBERg==
--outer--
`

func TestFormats(t *testing.T) {
	p := newPost(t)
	p.deliver(mixed)
	read := func(parameters string) workflow.Item {
		t.Helper()
		r, err := p.attempt("hand", "manual", parameters)
		require.NoError(t, err)
		require.Len(t, r.Outputs[0], 1)
		return r.Outputs[0][0]
	}
	simple := read(`{"format":"simple","downloadAttachments":true,"dataPropertyAttachmentsPrefixName":"file_"}`)
	require.JSONEq(t, `{"textHtml":"<b>Schön</b>","textPlain":"Schön","metadata":{"message-id":"<2@example.com>","x-custom":"yes","mime-version":"1.0",
		"content-type":"multipart/mixed; boundary=\"outer\""},"date":"Tue, 10 Jun 2025 04:00:00 +0200","from":"Jürgen <j@example.com>","subject":"Grüße",
		"to":"Ann <ann@example.com>, c@example.com","attributes":{"uid":1}}`, string(simple.JSON))
	require.Equal(t, "a b.pdf", simple.Binary["file_0"].FileName)
	require.Equal(t, "application/pdf", simple.Binary["file_0"].MimeType)
	require.Equal(t, base64.StdEncoding.EncodeToString([]byte("%PDF")), simple.Binary["file_0"].Data)
	require.Empty(t, read(`{}`).Binary)

	resolved := gjson.ParseBytes(read(`{"format":"resolved"}`).JSON)
	require.Equal(t, "Grüße", resolved.Get("subject").Str)
	require.Equal(t, "X-Custom: yes", resolved.Get("headers.x-custom").Str)
	require.Equal(t, "2025-06-10T02:00:00.000Z", resolved.Get("date").Str)
	require.JSONEq(t, `{"address":"j@example.com","name":"Jürgen"}`, resolved.Get("from.value.0").Raw)
	require.Equal(t, `"Ann" <ann@example.com>, c@example.com`, resolved.Get("to.text").Str)
	require.Equal(t, "<p>Schön</p>", resolved.Get("textAsHtml").Str)
	require.Len(t, read(`{"format":"resolved"}`).Binary, 1)

	raw, err := base64.URLEncoding.DecodeString(gjson.GetBytes(read(`{"format":"raw"}`).JSON, "raw").Str)
	require.NoError(t, err)
	require.Equal(t, strings.ReplaceAll(mixed, "\n", "\r\n"), string(raw))
	require.Equal(t, 1, p.Unseen(t), "reading does not mark")
}

func TestRules(t *testing.T) {
	p := newPost(t)
	p.deliver(letterOf("apples"))
	p.deliver(letterOf("pears"))
	for rules, want := range map[string][]string{
		`["ALL"]`:                        {"apples", "pears"},
		`["UNSEEN",["SUBJECT","pears"]]`: {"pears"},
		`[["!SUBJECT","pears"]]`:         {"apples"},
		`["!SEEN",["OR",["SUBJECT","apples"],"FLAGGED"]]`:       {"apples"},
		`[["SINCE","January 1, 2020"],["BEFORE","2020-01-02"]]`: nil,
		`[["UID","2:*"]]`:  {"pears"},
		`[["FROM","bob"]]`: {"apples", "pears"},
	} {
		p.notes = nil
		require.Equal(t, want, p.poll("k", `{"postProcessAction":"nothing","options":{"customEmailConfig":`+fmt.Sprintf("%q", rules)+`}}`), rules)
	}
	for rules, want := range map[string]string{`UNSEEN`: "no JSON list", `["NEWEST"]`: "NEWEST", `[["SINCE","soon"]]`: "date", `[["OR","SEEN"]]`: "two rules", `[["SUBJECT"]]`: "1 values"} {
		_, err := p.attempt("k", "trigger", `{"options":{"customEmailConfig":`+fmt.Sprintf("%q", rules)+`}}`)
		require.ErrorContains(t, err, want)
	}
}

func TestServerProblems(t *testing.T) {
	p := newPost(t)
	_, err := p.attempt("k", "trigger", `{"mailbox":"Nowhere"}`)
	require.ErrorContains(t, err, `"Nowhere" cannot be opened`)
	p.Port = 1
	_, err = p.attempt("k", "trigger", `{}`)
	require.ErrorContains(t, err, "cannot be reached")
	require.NotContains(t, err.Error(), imaptest.Password)
}
