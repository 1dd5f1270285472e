// Package mockllm is a language model without a model: a server that speaks
// OpenAI's chat completions and Responses API and answers from a script, or,
// for models the script does not name, by a simple built-in rule.
//
// It keeps no state between requests. Which turn of a script is played follows
// from the conversation it is sent: the number of tool results after the last
// user message. So it answers alike whether parallel calls are replayed as one
// assistant message or as several, whatever was repeated or lost in between,
// and any number of conversations may run at once.
//
// A script is JSON, model name -> scenario:
//
//	{"two-tools": {
//	  "turns": [
//	    {"tool_calls": [{"name": "Calculator", "args": {"input": "6*7"}}]},
//	    {"content": "Based on the tools: {{results}}."}
//	  ],
//	  "variants": [{"match": "no tools", "turns": [{"content": "You said: {{prompt}}"}]}]
//	 },
//	 "broken": {"fail_status": 500}}
//
// In contents and arguments {{prompt}} is the last user message, {{results}}
// is "Calculator returned …; Shout returned …" and {{last}} the newest result.
// The last turn is repeated when a conversation goes on beyond it. think_ms
// delays a scenario's answers.
//
// The built-in rule (see rule.go) calls the offered tools that a prompt asks
// for, then tells what they returned.
package mockllm
