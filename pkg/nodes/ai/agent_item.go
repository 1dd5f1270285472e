package ai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// agentItem is the conversation about one input item.
type agentItem struct {
	run   *agentRun
	index int
	// turns of all rounds, oldest first; those from fresh on are this slice's.
	turns []*turn
	fresh int
	final *final
	// finishedBefore: an earlier slice finished the item.
	finishedBefore bool
	// runs is the log of models, memory and parser in this slice.
	runs []engine.SubRun
	// pending are this slice's calls that need a tool.
	pending []engine.Action
	// approved are calls that a person allowed and that have not been requested.
	approved []engine.Action
	// logged is how many messages earlier model calls have put into their logs.
	logged int
	prompt string
}

// turn is one message of the model that asks for tools.
type turn struct {
	Text    string            `json:"text,omitempty"`
	Calls   []toolCall        `json:"calls"`
	Answers map[string]string `json:"answers,omitempty"`
}

// final is the output of a finished item.
type final struct {
	JSON json.RawMessage `json:"json"`
}

// defaultIterations is how often a model may ask for tools.
const defaultIterations = 10

// advance asks the model until the item needs a tool or is finished.
func (it *agentItem) advance(ctx context.Context) error {
	call := it.run.call
	limit, ok, err := number(ctx, call, it.index, "options.maxIterations")
	if err != nil {
		return err
	}
	if !ok {
		limit = defaultIterations
	}
	if err := it.checkIterations(int(limit)); err != nil {
		return err
	}
	opening, session, err := it.opening(ctx)
	if err != nil {
		return err
	}
	for {
		messages := it.conversation(opening)
		answer, err := it.run.models.ask(ctx, it.index, question{
			Messages: messages, Tools: it.run.box.tools,
			IdempotencyKey: it.callKey(),
		}, min(it.logged, len(messages)), &it.runs)
		if err != nil {
			return err
		}
		it.logged = len(messages)
		if done, err := it.finish(ctx, answer, opening, session); done || err != nil {
			return err
		}
		it.takeCalls(answer)
		if len(it.pending) > 0 {
			return nil
		}
		if err := it.checkIterations(int(limit)); err != nil {
			return err
		}
	}
}

func (it *agentItem) checkIterations(limit int) error {
	if len(it.turns) < limit {
		return nil
	}
	failure := operationError(fmt.Sprintf(
		"Max iterations (%d) reached. The agent could not complete the task within the allowed number of iterations.", limit), "")
	failure.NotRetryable = true // the rounds are kept, so another attempt meets the same limit
	return failure
}

// callKey is the idempotency key of the item's next model call.
func (it *agentItem) callKey() string {
	key := it.run.call.IdempotencyKey
	if key == "" {
		return ""
	}
	return key + "_" + strconv.Itoa(it.index) + "_" + strconv.Itoa(len(it.turns))
}

// opening is what comes before the item's own turns: system message, memory
// and prompt.
func (it *agentItem) opening(ctx context.Context) (messages []message, session string, err error) {
	call := it.run.call
	system, err := text(ctx, call, it.index, "options.systemMessage", "")
	if err != nil {
		return nil, "", err
	}
	if it.run.parser != nil {
		system = strings.TrimSpace(system + "\n\n" + formatInstruction)
	}
	if it.prompt, err = it.readPrompt(ctx); err != nil {
		return nil, "", err
	}
	if system != "" {
		messages = append(messages, message{Role: roleSystem, Content: system})
	}
	if it.run.memory != nil {
		var history []message
		if history, session, err = it.run.memory.load(ctx, it.index, &it.runs); err != nil {
			return nil, "", err
		}
		messages = append(messages, history...)
	}
	messages = append(messages, message{Role: roleUser, Content: it.prompt})
	if it.fresh > 0 {
		// Everything before the newest answers is in the logs of earlier calls.
		it.logged = len(it.conversation(messages)) - len(it.turns[it.fresh-1].Calls)
	}
	return messages, session, nil
}

// firstDefine is the first version of the agent whose prompt is taken from the
// chat unless it is defined.
const firstDefine = 1.6

func (it *agentItem) readPrompt(ctx context.Context) (string, error) {
	call := it.run.call
	kind, err := text(ctx, call, it.index, "promptType", "")
	if err != nil {
		return "", err
	}
	isTool := call.Node.Type == family+"agentTool"
	if kind == "define" || isTool || kind == "" && call.Node.TypeVersion < firstDefine {
		value, err := param(ctx, call, it.index, "text")
		if err != nil {
			return "", err
		}
		if value.Exists() {
			return value.String(), nil
		}
		if kind == "define" || isTool {
			return "", operationError(`The "text" parameter is empty.`, "")
		}
	}
	names := []string{"chatInput"}
	if call.Node.TypeVersion < firstDefine {
		names = append(names, "chat_input", "input") // what the first versions read
	}
	for _, name := range names {
		if value := field(call, it.index, name); value.Exists() {
			return value.String(), nil
		}
	}
	return "", operationError("No prompt specified",
		"Expected to find the prompt in an input field called 'chatInput' (this is what the chat trigger node outputs). To use something else, change the 'Prompt' parameter")
}

// conversation is the opening and all turns, each call with its one answer.
func (it *agentItem) conversation(opening []message) []message {
	messages := opening[:len(opening):len(opening)]
	for _, t := range it.turns {
		messages = t.appendTo(messages)
	}
	return messages
}

func (t *turn) appendTo(messages []message) []message {
	messages = append(messages, message{Role: roleAssistant, Content: t.Text, ToolCalls: t.Calls})
	for _, c := range t.Calls {
		messages = append(messages, message{Role: roleTool, ToolCallID: c.ID, Content: t.Answers[c.ID]})
	}
	return messages
}

// takeCalls adds a turn for the answer's calls: those of known tools become
// actions, the others are answered at once.
func (it *agentItem) takeCalls(answer *reply) {
	t := &turn{Text: answer.Text, Answers: map[string]string{}}
	used := it.usedIDs()
	for i, c := range answer.Calls {
		c.ID = distinctID(used, c.ID, len(it.turns), i)
		t.Calls = append(t.Calls, c)
		action, problem := it.action(c)
		if problem != "" {
			t.Answers[c.ID] = `{"error":` + jsonobject.Quote(problem) + `}`
			continue
		}
		it.pending = append(it.pending, *action)
	}
	it.turns = append(it.turns, t)
}

// usedIDs are the call ids of the item so far. Some servers number the calls of each answer
// anew; a second call of that id would take the first one's answer.
func (it *agentItem) usedIDs() map[string]bool {
	used := map[string]bool{}
	for _, t := range it.turns {
		for _, c := range t.Calls {
			used[c.ID] = true
		}
	}
	return used
}

func distinctID(used map[string]bool, id string, turn, call int) string {
	if id == "" {
		id = fmt.Sprintf("call_%d_%d", turn, call)
	}
	distinct := id
	for n := 2; used[distinct]; n++ {
		distinct = id + "_" + strconv.Itoa(n)
	}
	used[distinct] = true
	return distinct
}

// action is the request for one call, or what is wrong with a call that cannot
// become one.
func (it *agentItem) action(c toolCall) (*engine.Action, string) {
	t := it.run.box.find(c.Name)
	if t == nil || t.node == "" {
		return nil, it.run.box.unknown(c.Name)
	}
	if !isObject(c.Arguments) {
		return nil, fmt.Sprintf("The arguments for %s are not a JSON object: %s", c.Name, shortened(c.Arguments, 200))
	}
	if t.gate != nil {
		action, err := it.question(t, c)
		if err != nil {
			return nil, "The question about " + c.Name + " cannot be written: " + err.Error()
		}
		return action, ""
	}
	action := newAction(c.ID, t, it.index)
	action.Input = json.RawMessage(c.Arguments)
	problem, err := violations(t.schema, action.Input)
	if err != nil {
		problem = "the tool's schema is broken: " + err.Error()
	}
	if problem != "" {
		action.Error = badArguments(t, problem)
	}
	return action, ""
}

func newAction(id string, t *tool, item int) *engine.Action {
	return &engine.Action{
		ActionType: "ExecutionNodeAction", NodeName: t.node, Type: workflow.Tool, ID: id,
		Metadata: engine.ActionMetadata{ItemIndex: item, ToolName: t.name},
	}
}

func badArguments(t *tool, problem string) *engine.NodeError {
	return &engine.NodeError{
		Name: "NodeOperationError", Reason: engine.ReasonBadArguments, NotRetryable: true,
		Message: "Bad arguments for " + t.name + ": " + problem,
	}
}

// unknown tells a model that a tool does not exist and which do.
func (b *toolbox) unknown(name string) string {
	var names []string
	for _, t := range b.tools {
		names = append(names, t.name)
	}
	if len(names) == 0 {
		return fmt.Sprintf("There is no tool %q, and no other either", name)
	}
	return fmt.Sprintf("There is no tool %q. The tools are: %s", name, strings.Join(names, ", "))
}

// finish ends the item if the answer is its last: a text, or a structured answer, even beside
// other calls.
func (it *agentItem) finish(ctx context.Context, answer *reply, opening []message, session string) (done bool, err error) {
	structured, handedIn := "", false
	if it.run.parser != nil {
		for _, c := range answer.Calls {
			if t := it.run.box.find(c.Name); t != nil && t.node == "" {
				structured, handedIn = c.Arguments, true
			}
		}
	}
	if len(answer.Calls) > 0 && !handedIn {
		return false, nil
	}
	spoken := answer.Text
	output := json.RawMessage(`{"output":` + jsonobject.Quote(answer.Text) + `}`)
	if it.run.parser != nil {
		if !handedIn {
			structured = answer.Text
		}
		if output, err = it.run.parser.parse(ctx, it.index, structured, &it.runs); err != nil {
			return true, err
		}
		spoken = string(output)
	}
	steps, err := flag(ctx, it.run.call, it.index, "options.returnIntermediateSteps", false)
	if err != nil {
		return true, err
	}
	if steps {
		object := jsonobject.Parse(output)
		object.Set("intermediateSteps", it.steps())
		output = object.JSON()
	}
	it.final = &final{JSON: output}
	if it.run.memory == nil || spoken == "" {
		return true, nil
	}
	exchange := it.conversation([]message{{Role: roleUser, Content: it.prompt}})
	exchange = append(exchange, message{Role: roleAssistant, Content: spoken})
	return true, it.run.memory.save(session, exchange)
}

// fail finishes the item with its error as output.
func (it *agentItem) fail(err error) {
	message := err.Error()
	var failure *engine.NodeError
	if errors.As(err, &failure) {
		message = failure.Message
	}
	it.pending = nil
	it.final = &final{JSON: json.RawMessage(`{"error":` + jsonobject.Quote(message) + `}`)}
}
