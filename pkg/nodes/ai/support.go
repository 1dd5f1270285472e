package ai

import "github.com/reprise-engine/reprise/pkg/node"

// supported declares which settings are honoured.
var supported = map[string]node.Support{
	family + "agent": {
		Options: []string{"batching", "maxIterations", "returnIntermediateSteps", "systemMessage"},
		Ignored: map[string]string{
			"enableStreaming":         "the answer is given when it is complete",
			"passthroughBinaryImages": "models are not shown images",
			"tracingMetadata":         "it is for a service that is not asked",
			"humanMessage":            "a prompt of agents that all run as Tools Agent here",
			"prefix":                  "a prompt of agents that all run as Tools Agent here",
			"suffix":                  "a prompt of agents that all run as Tools Agent here",
		},
		Limits: []node.Limit{{Parameter: "agent", Values: []string{"sqlAgent"}, Advice: "use a Tools Agent with a tool that queries the database"}},
		Note:   "all kinds of agents run as Tools Agent",
	},
	family + "lmChatOpenAi": {
		Options: []string{
			"baseURL", "frequencyPenalty", "maxRetries", "maxTokens", "presencePenalty", "reasoningEffort", "responseFormat",
			"temperature", "textFormat", "timeout", "topP",
		},
		Limits:      []node.Limit{{Parameter: "builtInTools", Advice: "connect tools to the Agent instead"}},
		Credentials: []string{"openAiApi"},
		Note:        "also for servers that speak OpenAI's API, with their URL in the credential",
	},
	family + "memoryBufferWindow":     {Options: []string{}},
	family + "outputParserStructured": {Options: []string{}},
	family + "toolCalculator":         {Options: []string{}},
	family + "toolThink":              {Options: []string{}},
	family + "toolCode": {
		Options: []string{},
		Limits:  []node.Limit{{Parameter: "language", Values: []string{"python"}, Advice: "rewrite the code in JavaScript"}},
	},
}
