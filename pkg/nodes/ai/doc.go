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
// # Tools behind a gate
//
// A node whose type ends in "HitlTool" stands between tools and the Agent and asks a
// person. The model sees the tools behind it, with the schema n8n gives them:
// {"toolParameters": the tool's, "hitlParameters": what the gate takes by $fromAI}; it may
// leave out the wrapper. One call takes two rounds:
//
//	model -> call c1 -> request(gate, c1) … a person decides … -> slice: approved?
//	  yes: request(tool, c1, Approval = the gate's run) -> slice: answer of c1 -> model
//	  no, too late: the refusal is the answer of c1                           -> model
//
// The second round holds all approved calls of all items and is asked for before any
// model; it has no turn, so it is no iteration. What the gate was asked comes back in the
// action's Extra, so the metadata of a round says no more than before: the turn, with the
// arguments as the model wrote them, since the gate's action has them in another form.
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
