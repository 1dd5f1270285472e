package flow

import "github.com/reprise-engine/reprise/pkg/node"

// onCall is a wait for a webhook call.
var onCall = map[string]string{"resume": "webhook"}

// supported declares which settings are honoured; what is not is refused by refuseUnsupported
// and its neighbours.
var supported = map[string]node.Support{
	base + "wait": {
		Options: []string{"buttonLabel", "respondWithOptions", "webhookSuffix", "responseCode", "responseData", "responseHeaders", "noResponseBody", "ipWhitelist", "ignoreBots"},
		Ignored: map[string]string{
			"appendAttribution": "no line about the program is shown", "customCss": "pages keep their own look",
			"useWorkflowTimezone": "submittedAt is in the workflow's time zone",
		},
		Limits: []node.Limit{
			{Parameter: "incomingAuthentication", Values: []string{"headerAuth", "jwtAuth"}, When: map[string]string{"resume": "form"}, Advice: "choose basicAuth: a browser sends nothing else"},
			{Parameter: "responseMode", Values: []string{"responseNode"}, When: onCall, Advice: "respond to a webhook call immediately or when the last node finishes"},
			{Parameter: "responseData", Values: []string{"allEntries", "firstEntryBinary", "noData"}, When: onCall, Advice: "respond with the first item's JSON"},
			{Parameter: "options.ipWhitelist", When: onCall, Advice: "limit access in front of the server"},
			{Parameter: "options.ignoreBots", When: onCall, Advice: "let the webhook call use the method POST, which link previews do not"},
		},
	},
	base + "executeWorkflow": {Options: []string{"waitForSubWorkflow"}},
	family + "toolWorkflow":  {Options: []string{}},
}
