// Package ai has the node types around language models: the Agent, the chat
// models, memories and output parsers attached to it, and simple tools.
//
// # The Agent
//
// The Agent never runs a tool. One call of Execute (a slice of its run) asks the
// model for every item that is not finished and returns either items or an
// engine.Request with the tool calls of all items. When the engine has the
// answers it calls Execute again with the rounds so far.
//
// An item's conversation is rebuilt from those rounds. What the records of the
// tools do not hold is kept in the request's metadata, once per round:
//
//	{"items": [
//	  {"item": 0,
//	   "turns": [{"text": "Let me see.", "calls": [{"id": "call_1", "name": "Search"}],
//	              "answers": {"call_2": "{\"error\":\"…\"}"}}],
//	   "final": {"json": {"output": "…"}}}
//	]}
//
// A turn is one message of the model that asks for tools. The arguments of a
// call are left out where the round's action has them; answers are those that
// needed no tool run (an unknown tool, arguments that are no JSON). An item with a
// final is finished: it is never asked about again.
//
// Three rules follow. Each call has exactly one answer in the history, in the
// order asked. A turn is stored once, so a run's bytes grow with its rounds and
// not with their square. And nothing but the rounds is needed to go on, on any worker.
//
// # Memory
//
// Conversations are lists of messages, each a JSON object:
//
//	{"role": "user", "content": "…"}
//	{"role": "assistant", "content": "…", "toolCalls": [{"id": "…", "name": "…", "arguments": "{…}"}]}
//	{"role": "tool", "toolCallId": "…", "content": "…"}
//
// A run appends its prompt, all its tool calls with their answers and the final
// answer, once, with the slice in which the item is finished. Nothing is
// appended for an item that failed or whose answer is empty.
package ai
