package flow

import "github.com/reprise-engine/reprise/pkg/node"

// supported declares which settings are honoured; what is not is refused by refuseUnsupported
// and its neighbours.
var supported = map[string]node.Support{
	base + "wait": {
		Options: []string{"webhookSuffix", "responseCode", "responseData", "responseHeaders", "noResponseBody", "ipWhitelist", "ignoreBots"},
		Limits: []node.Limit{
			{Parameter: "resume", Values: []string{"form"}, Advice: "wait for a webhook call, and let a form of your own call the resume URL"},
			{Parameter: "incomingAuthentication", Advice: "choose none: resume URLs are signed, only who was given one can call it"},
			{Parameter: "responseMode", Values: []string{"responseNode"}, Advice: "respond immediately or when the last node finishes"},
			{Parameter: "responseData", Values: []string{"allEntries", "firstEntryBinary", "noData"}, Advice: "respond with the first item's JSON"},
			{Parameter: "options.ipWhitelist", Advice: "limit access in front of the server"},
			{Parameter: "options.ignoreBots", Advice: "use the method POST, which link previews do not"},
		},
	},
	base + "executeWorkflow": {Options: []string{"waitForSubWorkflow"}},
	family + "toolWorkflow":  {Options: []string{}},
}
