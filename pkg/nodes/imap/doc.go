// Package imap holds n8n-nodes-base.emailReadImap, the trigger that begins executions with
// the mails that come into a mailbox.
//
// It polls (see package poll): each time it logs in, looks for mails that match its rules, and gives
// out those that no earlier poll gave out. Mails are read without being marked. Whoever wants them
// marked as read gets that from the next poll, when the execution that they began is stored
// for sure: a mail that was marked before might be lost with the worker that has it.
//
// A mailbox numbers its mails in the order in which they come (UIDs). With "Fetch Only New
// Emails", which is the default, a poll looks at those behind the last one that was given out;
// without it, at all that match and were not given out since they match.
package imap

import (
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Type is the name of the type.
const Type = "n8n-nodes-base.emailReadImap"

// Types returns the node types of the package.
func Types() []*node.Type {
	return []*node.Type{{
		Spec:    workflow.Spec{Type: Type, Versions: []float64{1, 2, 2.1}, Trigger: true, Polls: true},
		Execute: execute,
		Support: node.Support{
			Options: []string{"allowUnauthorizedCerts", "customEmailConfig", "trackLastMessageId"},
			Ignored: map[string]string{"forceReconnect": "every poll connects anew"},
			Limits: []node.Limit{
				{Parameter: "authentication", Values: []string{"oAuth2"}, Advice: "use a credential with user and password, such as an app password"},
			},
			Credentials: []string{credentialType},
			Note:        "looks once a minute; mails are marked as read by the poll after the one that gave them out; see docs/triggers.md",
		},
	}}
}
