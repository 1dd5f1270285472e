// Package mail holds the nodes that send mail over SMTP: n8n-nodes-base.emailSend,
// and emailSendHitlTool, the gate that asks by mail before an Agent's tool is run
// (package approval says what a gate is). emailSendTool is emailSend as an Agent's tool.
//
// Sending makes one item per mail, in the shape of n8n's library (nodemailer):
//
//	{"accepted": […], "rejected": […], "envelopeTime": 1, "messageTime": 2, "messageSize": 345,
//	 "response": "250 …", "envelope": {"from": "…", "to": […]}, "messageId": "<…>"}
//
// A mail is delivered to those recipients that the server takes; it fails when the
// server takes none. SMTP cannot make a send repeatable, so every mail has a
// Message-ID made from the run's idempotency key and the item: attempts of the same run,
// after a crash or a lost connection, carry the same one, and mail systems and people
// can tell the copies.
//
// A question (operation sendAndWait, and the gate) is one mail with links to the
// page where a person decides, and then a wait in the same slice of the run. Links decide
// nothing by themselves, for mail scanners open them. They are a capability for whoever
// reads the mail, and appear nowhere else.
//
// A password goes over an encrypted connection only, unless the credential says to do
// without STARTTLS or the server is on this machine.
package mail

import (
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/approval"
	"github.com/reprise-engine/reprise/pkg/nodes/fromai"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// The names of the types.
const (
	TypeSend = "n8n-nodes-base.emailSend"
	TypeGate = "n8n-nodes-base.emailSendHitlTool"
)

// Types returns the node types of the package.
func Types() []*node.Type {
	return fromai.WithTools(node.Supporting([]*node.Type{
		{
			Spec:    workflow.Spec{Type: TypeSend, Versions: []float64{1, 2, 2.1}},
			Once:    always,
			Waits:   true,
			Execute: execute,
		},
		{
			Spec:    approval.GateSpec(TypeGate, 2, 2.1),
			Waits:   true,
			Execute: gate,
		},
	}, supported), map[string]fromai.Variant{TypeSend: {Description: "Sends an e-mail.", Versions: []float64{2, 2.1}}})
}

// always: a mail that may have been sent is not sent again without being told to.
func always(*workflow.Node) bool { return true }
