package ai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// chatModel asks a language model to go on with a conversation. It may be used
// by several items at once.
type chatModel interface {
	ask(ctx context.Context, q question) (*reply, error)
}

// question is one model call.
type question struct {
	Messages       []message
	Tools          []*tool
	IdempotencyKey string
}

// reply is a model's answer.
type reply struct {
	Text   string
	Calls  []toolCall
	Finish string // the provider's reason to stop, may be empty
	Model  string // the model that answered, may be empty
	Usage  usage
}

// usage counts tokens; all zero when the model does not tell.
type usage struct{ Prompt, Completion, Total int }

// providers open a chat model for an input item, by type of the sub-node.
var providers = map[string]func(ctx context.Context, call *node.Call, item int) (chatModel, error){
	family + "lmChatOpenAi": openOpenAI,
}

// models are the chat models of a node: the first is asked, the others when
// it fails.
type models struct {
	user  *node.Call
	calls []*node.Call
	open  []chatModel // of those whose parameters are the same for all items
}

// findModels returns the models attached to a node, its fallback included if
// it wants one.
func findModels(ctx context.Context, user *node.Call) (*models, error) {
	found := user.SubNodes[workflow.LanguageModel]
	if len(found) == 0 {
		return nil, operationError("Please connect a model to the Chat Model input", "")
	}
	fallback, err := flag(ctx, user, 0, "needsFallback", false)
	if err != nil {
		return nil, err
	}
	count := 1
	if fallback {
		if count = 2; len(found) < count {
			return nil, operationError("Please connect a model to the Fallback Model input or disable the fallback option", "")
		}
	}
	m := &models{user: user}
	for _, sub := range found[:count] {
		if providers[sub.Node.Type] == nil {
			return nil, operationError(
				fmt.Sprintf("The model %q (%s) is not supported", sub.Node.Name, strings.TrimPrefix(sub.Node.Type, family)),
				"Use an OpenAI Chat Model; with a base URL it speaks to any server of that API.")
		}
		m.calls = append(m.calls, attached(user, sub))
	}
	m.open = make([]chatModel, len(m.calls))
	for i, sub := range m.calls {
		if !constant(sub) {
			continue
		}
		if m.open[i], err = providers[sub.Node.Type](ctx, sub, 0); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// ask asks the models in order until one answers and adds what they did to the
// item's log. known is the number of messages that earlier calls have logged.
func (m *models) ask(ctx context.Context, item int, q question, known int, runs *[]engine.SubRun) (*reply, error) {
	var err error
	for i, sub := range m.calls {
		var answer *reply
		start := m.user.Now()
		model := m.open[i]
		if model == nil {
			model, err = providers[sub.Node.Type](ctx, sub, item)
		} else {
			err = nil
		}
		if err == nil {
			answer, err = observed(ctx, m.user, model, q)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		*runs = append(*runs, modelRun(m.user, sub, start.UnixMilli(), q.Messages, known, answer, err))
		if err == nil {
			return answer, nil
		}
	}
	return nil, err
}

// modelRun is the log of one model call. It repeats only messages that no
// earlier call of the item has logged, so that long runs do not grow with the
// square of their rounds; "earlierMessages" counts the others.
func modelRun(user, sub *node.Call, start int64, messages []message, known int, answer *reply, err error) engine.SubRun {
	run := engine.SubRun{
		Node: sub.Node.Name, Type: workflow.LanguageModel,
		StartTime: start, Duration: user.Now().UnixMilli() - start,
	}
	length := 0
	for _, m := range messages {
		length += len(m.Content)
		for _, c := range m.ToolCalls {
			length += len(c.Arguments)
		}
	}
	input := `{"messages":[` + jsonobject.Quote(transcript(messages[known:])) + `],"estimatedTokens":` + fmt.Sprint((length+3)/4)
	if known > 0 {
		input += fmt.Sprintf(`,"earlierMessages":%d`, known)
	}
	run.Input = single(input + "}")
	if err != nil {
		failure := modelFailure(err)
		run.Error = &engine.NodeError{
			Name: "NodeApiError", Message: failure.Message, Description: failure.Description,
			Reason: failure.Reason, HTTPCode: failure.HTTPCode,
		}
		return run
	}
	generation := `{"text":` + jsonobject.Quote(answer.Text)
	if answer.Finish != "" {
		generation += `,"generationInfo":{"finish_reason":` + jsonobject.Quote(answer.Finish) + "}"
	}
	run.Output = single(`{"response":{"generations":[[` + generation + fmt.Sprintf(
		`}]]},"tokenUsage":{"completionTokens":%d,"promptTokens":%d,"totalTokens":%d}}`,
		answer.Usage.Completion, answer.Usage.Prompt, answer.Usage.Total))
	return run
}

func single(json string) []workflow.Items {
	return []workflow.Items{{{JSON: rawJSON(json)}}}
}

func rawJSON(text string) json.RawMessage { return json.RawMessage(text) }

// modelFailure is err as the failure of the node that asked.
func modelFailure(err error) *engine.NodeError {
	if failure := (*engine.NodeError)(nil); errors.As(err, &failure) {
		return failure
	}
	return &engine.NodeError{Name: "NodeOperationError", Message: err.Error(), Reason: engine.ReasonModel}
}
