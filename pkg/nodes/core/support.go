package core

import "github.com/reprise-engine/reprise/pkg/node"

// python runs where its workers allow it.
var python = node.Limit{
	Parameter: "language", Values: []string{"python", "pythonNative"},
	Advice: "rewrite the code in JavaScript, or run the workers with REPRISE_PYTHON=on",
}

// supported declares which settings are honoured.
var supported = map[string]node.Support{
	base + "manualTrigger":                       {Options: []string{}},
	base + "noOp":                                {Options: []string{}},
	base + "errorTrigger":                        {Options: []string{}},
	base + "start":                               {Options: []string{}},
	base + "scheduleTrigger":                     {Options: []string{}},
	base + "cron":                                {Options: []string{}},
	base + "interval":                            {Options: []string{}},
	base + "sseTrigger":                          {Options: []string{}, Note: "events without a name, or of the name message, as in n8n; events that have no id are lost while nobody reads"},
	base + "executeWorkflowTrigger":              {Options: []string{}},
	base + "executionData":                       {Options: []string{}, Note: "keys and values are in resultData.metadata and read by $execution.customData; executions are not found by them"},
	"@n8n/n8n-nodes-langchain.manualChatTrigger": {Options: []string{}},
	base + "set":                                 {Options: []string{"dotNotation", "ignoreConversionErrors", "includeBinary", "stripBinary"}},
	base + "if":                                  {Options: []string{"ignoreCase", "looseTypeValidation"}},
	base + "filter":                              {Options: []string{"ignoreCase", "looseTypeValidation"}},
	base + "switch": {
		Options: []string{"allMatchingOutputs", "fallbackOutput", "ignoreCase", "looseTypeValidation"},
		Ignored: map[string]string{"renameFallbackOutput": "a name in the editor"},
	},
	base + "merge": {
		Options: []string{"clashHandling", "disableDotNotation", "emptyQueryResult", "fuzzyCompare", "includeUnpaired", "multipleMatches"},
		Note:    "SQL queries are AlaSQL's, with the limits of code; rows of a query do not know which items they came from",
	},
	base + "splitInBatches": {Options: []string{"reset"}},
	base + "limit":          {Options: []string{}},
	base + "stopAndError":   {Options: []string{}},
	base + "code": {
		Options: []string{}, Limits: []node.Limit{python},
		Note: "modules of JavaScript: crypto, buffer, url, util and others that need no network or files; of Python: its standard library; $execution.customData is set by JavaScript; in expressions it can be read",
	},
	base + "aiTransform":                  {Options: []string{}, Note: "runs the code that n8n's editor generated; no model is asked"},
	base + "n8nTrainingCustomerDatastore": {Options: []string{}, Note: "five customers, of whom the last three are not those of n8n"},
	base + "n8nTrainingCustomerMessenger": {Options: []string{}, Note: "sends nothing"},
	base + "function":                     {Options: []string{}},
	base + "functionItem":                 {Options: []string{}},
	base + "webhook": {Options: []string{
		"allowedOrigins", "binaryData", "binaryPropertyName", "ignoreBots", "ipWhitelist", "noResponseBody", "rawBody", "responseCode",
		"responseContentType", "responseData", "responseHeaders", "responsePropertyName",
	}},
	base + "formTrigger": {
		Options: []string{"buttonLabel", "formSubmittedText", "ignoreBots", "ipWhitelist", "path", "respondWithOptions"},
		Ignored: map[string]string{"appendAttribution": "no line about the program is shown", "customCss": "pages keep their own look"},
	},
	"@n8n/n8n-nodes-langchain.chatTrigger": {
		Options: []string{"allowFileUploads", "allowedOrigins", "inputPlaceholder", "loadPreviousSession", "responseMode", "subtitle", "title"},
	},
}
