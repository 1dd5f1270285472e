package mail

import "github.com/reprise-engine/reprise/pkg/node"

// support is what all types of the package have in common.
var support = node.Support{
	Options: []string{
		"allowUnauthorizedCerts", "attachments", "bccEmail", "ccEmail", "limitWaitTime", "messageButtonLabel", "replyTo",
		"responseFormButtonLabel", "responseFormTitle",
	},
	Ignored: map[string]string{
		"appendAttribution":       "no line about the sender's program is added",
		"responseFormCustomCss":   "the page keeps its own look",
		"responseFormDescription": "the page shows the mail's text",
	},
	Limits: []node.Limit{
		{Parameter: "responseType", Values: []string{"customForm"}, Advice: "ask for approval or a free text"},
	},
	Credentials: []string{"smtp"},
}

// supported declares which settings are honoured.
var supported = map[string]node.Support{TypeSend: support, TypeGate: support}
