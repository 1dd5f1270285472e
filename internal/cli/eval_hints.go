package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/reprise-engine/reprise/pkg/expression"
)

// expressionFailed is an expression's error for people, with what to do about it.
func expressionFailed(e *expression.Error, s *expression.Scope, text string) error {
	message := e.Message
	if e.Description != "" && e.Description != e.Message {
		message += "\n  " + e.Description
	}
	hint := ""
	switch {
	case e.Message == "invalid syntax" && strings.Count(text, "{{") > strings.Count(text, "}}"):
		hint = "a {{ is not closed by }}"
	case e.Message == "invalid syntax" && regexp.MustCompile(`\{\{\s*\}\}`).MatchString(text):
		hint = "a {{ }} is empty"
	case e.Message == "invalid syntax":
		hint = "it is no JavaScript; a }} ends an expression even inside of a text or an object"
	case s.RunData == nil && (e.Type == "no_execution_data" || strings.Contains(text, "$(")):
		hint = "other nodes are known with --workflow FILE --node NAME only"
	case e.Type == "no_execution_data":
		hint = "give the data of a run in which that node ran, with --run-data"
	case strings.Contains(text, "$env"):
		hint = "$env is not there in this command"
	}
	if hint != "" {
		message += "\n  hint: " + hint
	}
	return fmt.Errorf("%s", message)
}

var segmentPattern = regexp.MustCompile(`(?s)\{\{(.*?)\}\}`)

// hints say why the expressions in a text have no value: n8n swallows what their code throws.
func (e *evaluation) hints(ctx context.Context, s *expression.Scope, item int, text string) []string {
	var hints []string
	for _, m := range segmentPattern.FindAllStringSubmatch(text, -1) {
		code := strings.TrimSpace(m[1])
		if v, err := e.evaluator.Evaluate(ctx, s, item, "={{ "+code+" }}"); err != nil || v.Kind != "undefined" {
			continue
		}
		if hint := e.missing(ctx, s, item, code); hint != "" {
			hints = append(hints, hint)
		} else if thrown := e.thrown(ctx, s, item, code); thrown != "" {
			hints = append(hints, fmt.Sprintf("%s: %s (n8n swallows this and gives undefined)", shorten(code, 60), thrown))
		}
	}
	return hints
}

// thrownMark begins a result that is what the code threw.
const thrownMark = "\u0001thrown "

// thrown is what the code throws. It is evaluated once more, with a catch around it.
func (e *evaluation) thrown(ctx context.Context, s *expression.Scope, item int, code string) string {
	wrapped := "={{ (() => { try { return (" + code + "\n) } catch (e) { return '" + thrownMark + "' + e.name + ': ' + e.message } })() }}"
	v, err := e.evaluator.Evaluate(ctx, s, item, wrapped)
	var text string
	if err != nil || json.Unmarshal(v.JSON, &text) != nil {
		return ""
	}
	message, _ := strings.CutPrefix(text, thrownMark)
	if message == text {
		return ""
	}
	return message
}

var pathPattern = regexp.MustCompile(`^(.*?)(?:\?\.|\.)?(?:([A-Za-z_$][\w$]*)|\[\s*(?:"([^"]*)"|'([^']*)')\s*\])$`)

// missing finds the key at which a plain path ends, and the keys that are there.
func (e *evaluation) missing(ctx context.Context, s *expression.Scope, item int, code string) string {
	for depth := 0; depth < 50; depth++ {
		m := pathPattern.FindStringSubmatch(code)
		if m == nil || m[1] == "" {
			return ""
		}
		parent, key := strings.TrimSpace(m[1]), m[2]+m[3]+m[4]
		v, err := e.evaluator.Evaluate(ctx, s, item, "={{ "+parent+" }}")
		if err != nil {
			return ""
		}
		var object map[string]json.RawMessage
		switch {
		case v.Kind == "undefined":
			code = parent
			continue
		case json.Unmarshal(v.JSON, &object) != nil || object == nil:
			return fmt.Sprintf("%s is %s, which has no %q", parent, shorten(string(v.JSON), 60), key)
		}
		if _, there := object[key]; there {
			return ""
		}
		return fmt.Sprintf("%s has no %q%s", parent, key, keysHint(object, key))
	}
	return ""
}

// keysHint names the key that was probably meant, or those that are there.
func keysHint(object map[string]json.RawMessage, key string) string {
	keys := make([]string, 0, len(object))
	best, least := "", 3
	for k := range object {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		if d := distance(strings.ToLower(k), strings.ToLower(key)); d < least {
			best, least = k, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf("; did you mean %q?", best)
	case len(keys) == 0:
		return ": it is empty"
	}
	const most = 12
	list := strings.Join(keys[:min(len(keys), most)], ", ")
	if len(keys) > most {
		list += ", …"
	}
	return "; it has " + list
}

// distance is the number of insertions, deletions and changes between two names.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j]+1, row[j+1]+1, diagonal+cost)
		}
	}
	return row[len(y)]
}
