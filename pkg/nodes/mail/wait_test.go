package mail_test

import (
	"encoding/json"
	"html"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	mailnodes "github.com/reprise-engine/reprise/pkg/nodes/mail"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

const (
	approvalURL  = "https://flows.test/approval/e_7?signature=abc.def"
	gateMail     = `{"fromEmail":"n8n@lab.test","toEmail":"boss@lab.test","subject":"Approval needed","options":{"appendAttribution":false}}`
	waitingMail  = `{"operation":"sendAndWait","fromEmail":"n8n@lab.test","toEmail":"boss@lab.test","subject":"Go on?","message":"Is\nthis right?"`
	gatedCommand = `{"toolParameters":{"input": "<b>6*7</b>","note":"a & b"},"tool":"Calculator"}`
)

// asking is a call that knows the page where a person decides.
func asking(tb testing.TB, typeName, parameters string, box *mailbox, items ...string) *node.Call {
	call := mailCall(tb, typeName, parameters, box.credential(nil), items...)
	call.Execution.ApprovalURL = approvalURL
	return call
}

// asksFor is a gate in front of a Calculator, called with arguments.
func asksFor(tb testing.TB, parameters, arguments string, box *mailbox) *node.Call {
	call := asking(tb, mailnodes.TypeGate, parameters, box, arguments)
	call.ToolArguments = json.RawMessage(arguments)
	call.SubNodes = map[string][]*node.Call{workflow.Tool: {{Node: &workflow.Node{Name: "Calculator"}}}}
	return call
}

func with(parameters, more string) string {
	return strings.TrimSuffix(parameters, "}") + "," + more + "}"
}

func TestGateSendsTheQuestionAndWaits(t *testing.T) {
	box := (&mailbox{}).start(t)
	result := execute(t, asksFor(t, gateMail, gatedCommand, box))
	require.Equal(t, &engine.Wait{
		Kind: engine.WaitApproval,
		Question: &engine.Question{
			Title: "Approval needed", Text: `An agent wants to run "Calculator" and needs your approval.`,
			Tool: "Calculator", ToolName: "Calculator", Arguments: json.RawMessage(`{"input": "<b>6*7</b>","note":"a & b"}`),
			Approve: "Approve", Deny: "Decline",
		},
	}, result.Wait)
	require.Nil(t, result.Outputs)

	m := box.only(t)
	require.Equal(t, []string{"boss@lab.test"}, m.to)
	got := read(t, m.data)
	require.Equal(t, []string{"text/plain", "text/html"}, got.order)
	require.Equal(t, "Approval needed", got.header.Get("Subject"))

	text := got.leaves["text/plain"].content
	require.Contains(t, text, "Tool: Calculator\n{\n  \"input\": \"<b>6*7</b>\",\n  \"note\": \"a & b\"\n}")
	require.Contains(t, text, "\nApprove: "+approvalURL+"&choice=approve\nDecline: "+approvalURL+"&choice=deny\n")

	page := got.leaves["text/html"].content
	require.Contains(t, page, `&#34;input&#34;: &#34;&lt;b&gt;6*7&lt;/b&gt;&#34;`)
	require.Contains(t, page, `a &amp; b`)
	require.NotContains(t, page, "<b>6*7")
	require.Contains(t, page, `href="`+html.EscapeString(approvalURL+"&choice=approve")+`"`)
	require.Contains(t, page, `href="`+html.EscapeString(approvalURL+"&choice=deny")+`"`)
	require.Contains(t, page, "Nothing is decided until you answer there.")
	require.NotContains(t, page, "ZgotmplZ", "nothing was taken for dangerous")
}

func TestARepeatedQuestionHasTheSameMessageID(t *testing.T) {
	box := (&mailbox{}).start(t)
	execute(t, asksFor(t, gateMail, gatedCommand, box))
	execute(t, asksFor(t, gateMail, gatedCommand, box))
	mails := box.received()
	require.Len(t, mails, 2)
	require.Equal(t, read(t, mails[0].data).header.Get("Message-Id"), read(t, mails[1].data).header.Get("Message-Id"))
}

func TestGateShowsTheArgumentsUnlessTheMessageDoes(t *testing.T) {
	for _, tt := range []struct {
		name, message, arguments string
		shown                    bool
	}{
		{"the message says nothing", "Please decide.", `{"input":"6*7"}`, true},
		{"the message names the tool only", "=May {{ $json.tool }} run?", `{"input":"6*7"}`, true},
		{"the message names both", "=May {{ $json.tool }} compute {{ $json.toolParameters.input }}?", `{"input":"6*7"}`, false},
		{"the message lists the arguments", "=May {{ $json.tool }} run with {{ $json.toolParameters }}?", `{"input":"6*7"}`, false},
		{"one argument is left out", "=May {{ $json.tool }} compute {{ $json.toolParameters.input }}?", `{"input":"6*7","to":"Ada"}`, true},
		{"a value is only a part of another word", "May Calculator run 123?", `{"amount":1}`, true},
		{"nothing to show", "May Calculator run?", `{}`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			box := (&mailbox{}).start(t)
			execute(t, asksFor(t, with(gateMail, `"message":"`+tt.message+`"`), `{"toolParameters":`+tt.arguments+`,"tool":"Calculator"}`, box))
			got := read(t, box.only(t).data)
			require.Equal(t, tt.shown, strings.Contains(got.leaves["text/plain"].content, "Tool: Calculator"))
			require.Equal(t, tt.shown, strings.Contains(got.leaves["text/html"].content, "<pre "))
		})
	}
}

func TestLongArgumentsAreShortenedInTheMailOnly(t *testing.T) {
	box := (&mailbox{}).start(t)
	arguments := `{"input":"` + strings.Repeat("ä", 20_000) + `"}`
	result := execute(t, asksFor(t, gateMail, `{"toolParameters":`+arguments+`,"tool":"Calculator"}`, box))
	require.Equal(t, arguments, string(result.Wait.Question.Arguments))
	text := read(t, box.only(t).data).leaves["text/plain"].content
	require.Contains(t, text, "(shortened; the page shows all of it)")
	require.NotContains(t, text, "\uFFFD")
}

func TestHiddenCharactersAreShown(t *testing.T) {
	box := (&mailbox{}).start(t)
	execute(t, asksFor(t, gateMail, "{\"toolParameters\":{\"to\":\"a\u202eb\U000e0041\"},\"tool\":\"Calculator\"}", box))
	got := read(t, box.only(t).data)
	require.Contains(t, got.leaves["text/plain"].content, `"to": "a\u202eb\udb40\udc41"`)
	require.NotContains(t, got.leaves["text/html"].content, "\u202e")
}

func TestButtons(t *testing.T) {
	const labels = `"approveLabel":"Yes & go","disapproveLabel":"No"`
	for _, tt := range []struct {
		name, typeName, parameters string
		approve, deny              string
		freeText                   bool
		links                      []string
	}{
		{name: "a step of a workflow has one", typeName: mailnodes.TypeSend, parameters: waitingMail + `}`,
			approve: "Approve", links: []string{"Approve: " + approvalURL + "&choice=approve"}},
		{name: "or two", typeName: mailnodes.TypeSend, parameters: waitingMail + `,"approvalOptions":{"values":{"approvalType":"double",` + labels + `}}}`,
			approve: "Yes & go", deny: "No", links: []string{"Yes & go: " + approvalURL + "&choice=approve", "No: " + approvalURL + "&choice=deny"}},
		{name: "a gate has two", typeName: mailnodes.TypeGate, parameters: gateMail,
			approve: "Approve", deny: "Decline", links: []string{"Approve: " + approvalURL + "&choice=approve", "Decline: " + approvalURL + "&choice=deny"}},
		{name: "or one when that is wanted", typeName: mailnodes.TypeGate, parameters: with(gateMail, `"approvalOptions":{"values":{"approvalType":"single",`+labels+`}}`),
			approve: "Yes & go", links: []string{"Yes & go: " + approvalURL + "&choice=approve"}},
		{name: "a text", typeName: mailnodes.TypeSend, parameters: waitingMail + `,"responseType":"freeText"}`,
			approve: "Submit", freeText: true, links: []string{"Respond: " + approvalURL}},
		{name: "a text with labels", typeName: mailnodes.TypeSend,
			parameters: waitingMail + `,"responseType":"freeText","options":{"messageButtonLabel":"Say it","responseFormButtonLabel":"Done"}}`,
			approve:    "Done", freeText: true, links: []string{"Say it: " + approvalURL}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			box := (&mailbox{}).start(t)
			call := asking(t, tt.typeName, tt.parameters, box, `{}`)
			if tt.typeName == mailnodes.TypeGate {
				call = asksFor(t, tt.parameters, gatedCommand, box)
			}
			asked := execute(t, call).Wait.Question
			require.Equal(t, tt.approve, asked.Approve)
			require.Equal(t, tt.deny, asked.Deny)
			require.Equal(t, tt.freeText, asked.FreeText)
			got := read(t, box.only(t).data)
			var links []string
			for _, line := range strings.Split(got.leaves["text/plain"].content, "\n") {
				if strings.Contains(line, approvalURL) {
					links = append(links, line)
				}
			}
			require.Equal(t, tt.links, links)
			require.Equal(t, len(tt.links), strings.Count(got.leaves["text/html"].content, "<a href="))
		})
	}
}

func TestSendAndWaitAsksOnceForAllItems(t *testing.T) {
	box := (&mailbox{}).start(t)
	result := execute(t, asking(t, mailnodes.TypeSend, waitingMail+`}`, box, `{"n":1}`, `{"n":2}`))
	require.Equal(t, "Go on?", result.Wait.Question.Title)
	require.Equal(t, "Is\nthis right?", result.Wait.Question.Text)
	require.Empty(t, result.Wait.Question.Tool)
	got := read(t, box.only(t).data)
	require.Contains(t, got.leaves["text/html"].content, "Is<br>\nthis right?")
	require.True(t, strings.HasPrefix(got.leaves["text/plain"].content, "Is\nthis right?\n\nApprove: "))
}

func TestTimeLimit(t *testing.T) {
	for _, tt := range []struct {
		name, values string
		want         time.Time
		fails        string
	}{
		{name: "after an interval", values: `{"limitType":"afterTimeInterval","resumeAmount":1.5,"resumeUnit":"minutes"}`, want: now.Add(90 * time.Second)},
		{name: "in days", values: `{"resumeAmount":3,"resumeUnit":"days"}`, want: now.AddDate(0, 0, 3)},
		{name: "defaults", values: `{}`, want: now.Add(time.Hour)},
		{name: "at a moment in the workflow's zone", values: `{"limitType":"atSpecifiedTime","maxDateAndTime":"2026-12-24T18:00:00"}`, want: time.Date(2026, 12, 24, 17, 0, 0, 0, time.UTC)},
		{name: "at a moment with a zone", values: `{"limitType":"atSpecifiedTime","maxDateAndTime":"2026-12-24T18:00:00.000Z"}`, want: time.Date(2026, 12, 24, 18, 0, 0, 0, time.UTC)},
		{name: "over", values: `{"limitType":"atSpecifiedTime","maxDateAndTime":"2020-01-01"}`, fails: "over before it is asked"},
		{name: "no moment", values: `{"limitType":"atSpecifiedTime","maxDateAndTime":"soon"}`, fails: `"soon" is not a date`},
		{name: "no type", values: `{"limitType":"never"}`, fails: `"never" is not a limit`},
		{name: "no unit", values: `{"resumeUnit":"moons"}`, fails: `unit "moons" is unknown`},
		{name: "no time", values: `{"resumeAmount":0}`, fails: "over before it is asked"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			box := (&mailbox{}).start(t)
			call := asking(t, mailnodes.TypeSend, waitingMail+`,"options":{"limitWaitTime":{"values":`+tt.values+`}}}`, box, `{}`)
			call.Workflow.Timezone = "Europe/Berlin"
			result, err := call.Type.Execute(t.Context(), call)
			if tt.fails != "" {
				require.ErrorContains(t, err, tt.fails)
				require.Empty(t, box.received(), "nobody is asked what cannot be answered")
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want.UnixMilli(), result.Wait.Until)
			berlin, err := time.LoadLocation("Europe/Berlin")
			require.NoError(t, err)
			require.Contains(t, read(t, box.only(t).data).leaves["text/plain"].content,
				"Please answer before "+tt.want.In(berlin).Format("Monday, 2 January 2006, 15:04 MST")+".")
		})
	}
}

func TestResumedCallsSendNothing(t *testing.T) {
	decision := func(d engine.Decision) *engine.Resumption {
		d.At = now.UnixMilli()
		return &engine.Resumption{Kind: engine.WaitApproval, Decision: &d}
	}
	expired := &engine.Resumption{Kind: engine.WaitApproval, Expired: true}
	const at = `"respondedAt":"2026-12-01T05:34:31.000Z"`
	for _, tt := range []struct {
		name, typeName, parameters string
		resumption                 *engine.Resumption
		want                       string
	}{
		{"gate approved", mailnodes.TypeGate, gateMail, decision(engine.Decision{Approved: true}), `{"data":{"approved":true,` + at + `}}`},
		{"gate denied", mailnodes.TypeGate, gateMail, decision(engine.Decision{Feedback: "ask Bo"}), `{"data":{"approved":false,` + at + `,"chatInput":"ask Bo"}}`},
		{"gate expired", mailnodes.TypeGate, gateMail, expired, `{"data":{"approved":false,"expired":true}}`},
		{"approved", mailnodes.TypeSend, waitingMail + `}`, decision(engine.Decision{Approved: true}), `{"data":{"approved":true,` + at + `}}`},
		{"expired", mailnodes.TypeSend, waitingMail + `}`, expired, `{"data":{"approved":false,"expired":true}}`},
		{"text", mailnodes.TypeSend, waitingMail + `,"responseType":"freeText"}`, decision(engine.Decision{Feedback: "Rome"}), `{"data":{"text":"Rome"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			box := (&mailbox{}).start(t)
			call := asking(t, tt.typeName, tt.parameters, box, `{}`)
			if tt.typeName == mailnodes.TypeGate {
				call = asksFor(t, tt.parameters, gatedCommand, box)
				call.Inputs[0][0].PairedItem = workflow.PairedItems{{SourceOverwrite: &workflow.Source{PreviousNode: "Question"}}}
			}
			call.Resumption = tt.resumption
			require.Equal(t, []workflow.Items{{{JSON: json.RawMessage(tt.want), PairedItem: call.Inputs[0][0].PairedItem}}}, execute(t, call).Outputs)
			require.Empty(t, box.received())
		})
	}
}

func TestQuestionsThatCannotBeAsked(t *testing.T) {
	for _, tt := range []struct {
		name, typeName, parameters, want string
		change                           func(*node.Call)
	}{
		{name: "no page", typeName: mailnodes.TypeGate, parameters: gateMail, want: "There is no page on which a person could answer the mail",
			change: func(c *node.Call) { c.Execution.ApprovalURL = "" }},
		{name: "no page for a workflow's step", typeName: mailnodes.TypeSend, parameters: waitingMail + `}`, want: "There is no page",
			change: func(c *node.Call) { c.Execution.ApprovalURL = "" }},
		{name: "form", typeName: mailnodes.TypeSend, parameters: waitingMail + `,"responseType":"customForm"}`, want: "Forms as answers to a mail are not supported here"},
		{name: "unknown answer", typeName: mailnodes.TypeSend, parameters: waitingMail + `,"responseType":"song"}`, want: `The response type "song" is not known here`},
		{name: "a gate cannot ask for a text", typeName: mailnodes.TypeGate, parameters: with(gateMail, `"responseType":"freeText"`), want: "cannot allow a tool"},
		{name: "no tool", typeName: mailnodes.TypeGate, parameters: gateMail, want: `No tool is connected to "Node"`,
			change: func(c *node.Call) { c.SubNodes = nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			box := (&mailbox{}).start(t)
			call := asksFor(t, tt.parameters, gatedCommand, box)
			call.Type = typeNamed(t, tt.typeName)
			if tt.change != nil {
				tt.change(call)
			}
			_, err := call.Type.Execute(t.Context(), call)
			var failure *engine.NodeError
			require.ErrorAs(t, err, &failure)
			require.Contains(t, failure.Message, tt.want)
			require.True(t, failure.NotRetryable)
			if tt.name == "no page" {
				require.Contains(t, failure.Description, "REPRISE_PUBLIC_URL")
				require.Contains(t, failure.Description, "REPRISE_HTTP_ADDR")
			}
			require.Empty(t, box.received())
		})
	}
}

func TestUnsentQuestionsAreNotWaitedFor(t *testing.T) {
	box := (&mailbox{refused: map[string]bool{"boss@lab.test": true}}).start(t)
	call := asksFor(t, gateMail, gatedCommand, box)
	result, err := call.Type.Execute(t.Context(), call)
	require.ErrorContains(t, err, "does not accept the recipient boss@lab.test")
	require.Nil(t, result)
}
