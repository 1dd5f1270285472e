package mockllm

import (
	"strings"
	"sync"
	"unicode"

	"github.com/tidwall/gjson"
)

// finalTool is the tool by which n8n's Agent asks for an answer in a given
// shape: it is the answer, not a step before it.
const finalTool = "format_final_json_response"

// offered is a tool of a request, as far as the built-in rule needs it.
type offered struct {
	name       string
	words      []string // of the name, lower case
	calculator bool
	schema     gjson.Result
}

// rule is the built-in model:
//
//   - A prompt without results yet: calculator-like tools are called with the
//     arithmetic in the prompt, if there is any; then, in the order offered, the
//     tools all words of whose name occur in the prompt are called with the
//     whole prompt.
//   - With results: "Based on the tools: Calculator returned 42; …".
//   - Otherwise: "You said: …".
//
// Tools are calculator-like when their name contains "calc" or their
// description speaks of a math expression.
type rule struct {
	// known caches tool lists by their text: an agent offers the same ones in
	// every request.
	mu    sync.RWMutex
	known map[string][]offered
}

// maxKnown bounds the cache; a server that meets more lists starts anew.
const maxKnown = 256

func (r *rule) answer(req *request) *answer {
	c := &req.conversation
	var tools []offered
	if req.tools != "" {
		tools = r.tools(req.tools)
	}
	if len(c.results) == 0 {
		if calls := toolCalls(tools, c.prompt); len(calls) > 0 {
			return &answer{calls: calls}
		}
	}
	said := "You said: " + c.prompt
	if len(c.results) > 0 {
		said = "Based on the tools: " + plainResults(c.results) + "."
	}
	for _, t := range tools {
		if t.name == finalTool {
			return &answer{calls: []toolCall{{name: t.name, args: fillArguments(t.schema, said)}}}
		}
	}
	return &answer{content: said}
}

func toolCalls(tools []offered, prompt string) []toolCall {
	if len(tools) == 0 {
		return nil
	}
	var calls []toolCall
	if sum := findArithmetic(prompt); sum != "" {
		for _, t := range tools {
			if t.calculator {
				calls = append(calls, toolCall{name: t.name, args: fillArguments(t.schema, sum)})
			}
		}
	}
	said := wordsOf(prompt)
	for _, t := range tools {
		if !t.calculator && t.name != finalTool && containsAll(said, t.words) {
			calls = append(calls, toolCall{name: t.name, args: fillArguments(t.schema, prompt)})
		}
	}
	return calls
}

func (r *rule) tools(raw string) []offered {
	r.mu.RLock()
	tools, ok := r.known[raw]
	r.mu.RUnlock()
	if ok {
		return tools
	}
	raw = strings.Clone(raw) // it is a part of the whole request
	gjson.Parse(raw).ForEach(func(_, t gjson.Result) bool {
		if f := t.Get("function"); f.IsObject() { // chat completions; the Responses API has no such level
			t = f
		}
		name := t.Get("name").Str
		if name == "" {
			return true
		}
		tools = append(tools, offered{
			name:  name,
			words: wordsOf(name),
			calculator: strings.Contains(strings.ToLower(name), "calc") ||
				strings.Contains(strings.ToLower(t.Get("description").Str), "math expression"),
			schema: t.Get("parameters"),
		})
		return true
	})
	r.mu.Lock()
	if r.known == nil || len(r.known) >= maxKnown {
		r.known = map[string][]offered{}
	}
	r.known[raw] = tools
	r.mu.Unlock()
	return tools
}

// wordsOf splits at everything that is no letter or digit.
func wordsOf(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

func containsAll(said, words []string) bool {
	for _, w := range words {
		found := false
		for _, s := range said {
			if s == w {
				found = true
				break
			}
		}
		if !found {
			return false
		}
	}
	return len(words) > 0
}

// plainResults renders results for people: [{"response":"42"}] is told as 42.
func plainResults(results []toolResult) string {
	var b strings.Builder
	for i, r := range results {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(r.name)
		b.WriteString(" returned ")
		b.WriteString(plain(r.text))
	}
	return b.String()
}

func plain(observation string) string {
	trimmed := strings.TrimSpace(observation)
	if !strings.HasPrefix(trimmed, "[") && !strings.HasPrefix(trimmed, "{") || !gjson.Valid(trimmed) {
		return observation
	}
	value := gjson.Parse(trimmed)
	if value.IsArray() {
		items := value.Array()
		if len(items) != 1 {
			return observation
		}
		value = items[0]
	}
	fields := value.Map()
	response, ok := fields["response"]
	if len(fields) != 1 || !ok {
		return observation
	}
	return response.String()
}
