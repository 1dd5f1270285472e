package ai

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// formatTool is the tool through which a model hands in a structured answer.
const formatTool = "format_final_json_response"

const formatInstruction = "Give your final answer only by calling the tool `" + formatTool + "`, with the complete answer as its arguments. " +
	"Do not write the answer as text or as JSON of your own; an answer that does not come through this tool is rejected. " +
	"Call it once, when you have all you need."

const formatDescription = "Hands in the final answer. The arguments are checked against the required format and go to the user as they are. " +
	"Call it once, after all other tools; it is not for intermediate results or questions."

// structuredParser checks answers against a schema (node outputParserStructured).
type structuredParser struct {
	user, sub *node.Call
	// schema is what an answer must fit, shown is what the model is told: an
	// object with the one property "output".
	schema, shown json.RawMessage
	// derived schemas come from an example; what they do not name is left out of answers.
	derived bool
	fixer   *models // nil: answers that do not fit are not repaired
}

// findParser returns the parser attached to a node, or nil when there is none
// or the node does not ask for one.
func findParser(ctx context.Context, user *node.Call) (*structuredParser, error) {
	wanted, err := flag(ctx, user, 0, "hasOutputParser", false)
	found := user.SubNodes[workflow.OutputParser]
	if err != nil || !wanted || len(found) == 0 {
		return nil, err
	}
	sub := attached(user, found[0])
	if sub.Node.Type != family+"outputParserStructured" {
		return nil, operationError(
			fmt.Sprintf("The output parser %q (%s) is not supported", sub.Node.Name, strings.TrimPrefix(sub.Node.Type, family)),
			"Use a Structured Output Parser.")
	}
	p := &structuredParser{user: user, sub: sub}
	if err := p.readSchema(ctx); err != nil {
		return nil, err
	}
	fix, err := flag(ctx, sub, 0, "autoFix", false)
	if err != nil || !fix {
		return p, err
	}
	if p.fixer, err = findModels(ctx, sub); err != nil {
		return nil, operationError("The output parser "+sub.Node.Name+" repairs answers, but has no model", "Connect a model to it, or switch Auto-Fix Format off.")
	}
	return p, nil
}

func (p *structuredParser) readSchema(ctx context.Context) error {
	kind, err := text(ctx, p.sub, 0, "schemaType", "fromJson")
	if err != nil {
		return err
	}
	path := "jsonSchemaExample"
	switch {
	case p.sub.Node.TypeVersion < 1.2:
		path, kind = "jsonSchema", "manual"
	case kind == "manual":
		path = "inputSchema"
	}
	value, err := param(ctx, p.sub, 0, path)
	if err != nil {
		return err
	}
	source := json.RawMessage(value.String())
	if !json.Valid(source) {
		return operationError("The parameter "+path+" of "+p.sub.Node.Name+" is not valid JSON", "")
	}
	shown := source
	if kind != "manual" {
		p.derived = true
		example, required := string(source), p.sub.Node.TypeVersion >= 1.3
		source = json.RawMessage(jsonobject.SchemaOfExample(example, required, false))
		shown = json.RawMessage(jsonobject.SchemaOfExample(example, required, true))
	}
	p.schema = source
	if _, err := schemas.get(source); err != nil {
		return operationError("The schema of "+p.sub.Node.Name+" is not a JSON schema", err.Error())
	}
	var properties jsonobject.Object
	properties.Set("output", string(plainJSON(shown)))
	p.shown = jsonobject.Schema(properties, []string{"output"}, true).JSON()
	return nil
}

// tool is the parser as a tool for the model.
func (p *structuredParser) tool() *tool {
	return &tool{name: formatTool, description: formatDescription, schema: p.shown}
}

// parse reads the answer out of a model's text or arguments and returns the
// fields of the output item: {"output": …}.
func (p *structuredParser) parse(ctx context.Context, item int, answer string, runs *[]engine.SubRun) (json.RawMessage, error) {
	parsed, problem := p.read(answer)
	if problem != "" && p.fixer != nil {
		var err error
		if answer, err = p.repair(ctx, item, answer, problem, runs); err != nil {
			return nil, err
		}
		parsed, problem = p.read(answer)
	}
	run := engine.SubRun{
		Node: p.sub.Node.Name, Type: workflow.OutputParser, StartTime: p.user.Now().UnixMilli(),
		Input: single(`{"action":"parse","text":` + jsonobject.Quote(answer) + `}`),
	}
	defer func() { *runs = append(*runs, run) }()
	if problem != "" {
		failure := operationError("Model output doesn't fit required format", problem)
		failure.Reason = engine.ReasonModel
		run.Error = failure
		return nil, failure
	}
	wrapped := json.RawMessage(`{"output":` + string(parsed) + `}`)
	run.Output = single(`{"action":"parse","response":` + string(wrapped) + `}`)
	return wrapped, nil
}

// read finds the JSON in answer and checks it; problem is what is wrong with it.
func (p *structuredParser) read(answer string) (parsed json.RawMessage, problem string) {
	raw := jsonIn(answer)
	if raw == "" {
		return nil, "it is no JSON"
	}
	value := gjson.Parse(raw)
	// The tool's arguments hold the answer in "output"; models that write text often leave that out.
	candidates := []string{raw}
	if output := value.Get("output"); value.IsObject() && output.Exists() {
		candidates = []string{output.Raw, raw}
	}
	for _, candidate := range candidates {
		found, err := violations(p.schema, json.RawMessage(candidate))
		if err != nil {
			return nil, err.Error()
		}
		if found == "" {
			if p.derived {
				candidate = pruned(candidate, gjson.ParseBytes(p.schema))
			}
			return json.RawMessage(plainJSON([]byte(candidate))), ""
		}
		if problem == "" {
			problem = found
		}
	}
	return nil, problem
}

// repair asks the parser's own model to bring an answer into the format.
func (p *structuredParser) repair(ctx context.Context, item int, answer, problem string, runs *[]engine.SubRun) (string, error) {
	ask := question{IdempotencyKey: p.user.IdempotencyKey + "_fix", Messages: []message{{Role: roleUser, Content: "" +
		"Rewrite the completion so that it is JSON which fits the schema. Answer with the JSON only.\n\n" +
		"Schema:\n" + string(p.shown) + "\n\nCompletion:\n" + answer + "\n\nWhat is wrong with it: " + problem}}}
	got, err := p.fixer.ask(ctx, item, ask, 0, runs)
	if err != nil {
		return "", err
	}
	return got.Text, nil
}

// jsonIn is the JSON in a model's text: all of it, a fenced block, or from the
// first brace to the last; "" when there is none.
func jsonIn(text string) string {
	text = strings.TrimSpace(text)
	if json.Valid([]byte(text)) {
		return text
	}
	if _, after, ok := strings.Cut(text, "```"); ok {
		after = strings.TrimPrefix(after, "json")
		if block, _, ok := strings.Cut(after, "```"); ok && json.Valid([]byte(block)) {
			return strings.TrimSpace(block)
		}
	}
	for _, pair := range []string{"{}", "[]"} {
		from, to := strings.IndexByte(text, pair[0]), strings.LastIndexByte(text, pair[1])
		if from >= 0 && to > from && json.Valid([]byte(text[from:to+1])) {
			return text[from : to+1]
		}
	}
	return ""
}

// pruned is value without the properties that schema does not name.
func pruned(value string, schema gjson.Result) string {
	parsed := gjson.Parse(value)
	switch {
	case parsed.IsObject() && schema.Get("properties").IsObject():
		kept := jsonobject.Parse("{}")
		properties := schema.Get("properties").Map()
		parsed.ForEach(func(key, member gjson.Result) bool {
			if inner, ok := properties[key.String()]; ok {
				kept.Set(key.String(), pruned(member.Raw, inner))
			}
			return true
		})
		return kept.String()
	case parsed.IsArray() && schema.Get("items").IsObject():
		var list []string
		for _, element := range parsed.Array() {
			list = append(list, pruned(element.Raw, schema.Get("items")))
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	return value
}
