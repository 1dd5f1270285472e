package mockllm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// Script is a parsed script, ready to be played. It is read-only and may be
// shared.
type Script struct {
	models map[string]*scenario
}

type scenario struct {
	think      time.Duration
	failStatus int
	turns      []turn
	variants   []variant
}

type variant struct {
	match string
	turns []turn
}

type turn struct {
	content template
	calls   []scriptedCall
}

type scriptedCall struct {
	id   string // "" gets a fresh one for each answer
	name string
	args template // JSON; what is filled in is escaped for a JSON string
}

// The script as people write it.
type (
	scenarioJSON struct {
		ThinkMs    int        `json:"think_ms"`
		FailStatus int        `json:"fail_status"`
		Turns      []turnJSON `json:"turns"`
		Variants   []struct {
			Match string     `json:"match"`
			Turns []turnJSON `json:"turns"`
		} `json:"variants"`
	}
	turnJSON struct {
		Content   string `json:"content"`
		ToolCalls []struct {
			ID   string          `json:"id"`
			Name string          `json:"name"`
			Args json.RawMessage `json:"args"`
		} `json:"tool_calls"`
	}
)

// ParseScript reads a script. Unknown fields, scenarios without turns and
// calls without a name are errors that say which scenario is meant.
func ParseScript(data []byte) (*Script, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("model script: %w; it must be an object of model name to scenario", err)
	}
	s := &Script{models: make(map[string]*scenario, len(raw))}
	for name, body := range raw {
		sc, err := parseScenario(body)
		if err != nil {
			return nil, fmt.Errorf("model script: scenario %q: %w", name, err)
		}
		s.models[name] = sc
	}
	return s, nil
}

func parseScenario(body []byte) (*scenario, error) {
	var in scenarioJSON
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return nil, err
	}
	sc := &scenario{think: time.Duration(in.ThinkMs) * time.Millisecond, failStatus: in.FailStatus}
	if in.FailStatus != 0 {
		if in.FailStatus < 400 || in.FailStatus > 599 {
			return nil, fmt.Errorf("fail_status %d is no error status; use 400 to 599", in.FailStatus)
		}
		return sc, nil
	}
	var err error
	if sc.turns, err = parseTurns(in.Turns); err != nil {
		return nil, err
	}
	for _, v := range in.Variants {
		turns, err := parseTurns(v.Turns)
		if err != nil {
			return nil, fmt.Errorf("variant %q: %w", v.Match, err)
		}
		sc.variants = append(sc.variants, variant{match: v.Match, turns: turns})
	}
	return sc, nil
}

func parseTurns(in []turnJSON) ([]turn, error) {
	if len(in) == 0 {
		return nil, errors.New("no turns; give at least one, or a fail_status")
	}
	turns := make([]turn, 0, len(in))
	for i, t := range in {
		out := turn{content: parseTemplate(t.Content)}
		for _, c := range t.ToolCalls {
			if c.Name == "" {
				return nil, fmt.Errorf("turn %d: a tool call has no name", i)
			}
			args := []byte("{}")
			if len(c.Args) > 0 {
				var compact bytes.Buffer
				if err := json.Compact(&compact, c.Args); err != nil {
					return nil, fmt.Errorf("turn %d: arguments of %s: %w", i, c.Name, err)
				}
				args = compact.Bytes()
			}
			out.calls = append(out.calls, scriptedCall{id: c.ID, name: c.Name, args: parseTemplate(string(args))})
		}
		turns = append(turns, out)
	}
	return turns, nil
}

// pick chooses the turns for a prompt and the turn for the number of tool
// results that followed it: each turn with calls is over when all its calls
// have an answer.
func (sc *scenario) pick(prompt string, results int) *turn {
	turns := sc.turns
	for i := range sc.variants {
		if strings.Contains(prompt, sc.variants[i].match) {
			turns = sc.variants[i].turns
			break
		}
	}
	at, answered := 0, 0
	for at < len(turns)-1 && len(turns[at].calls) > 0 {
		answered += len(turns[at].calls)
		if results < answered {
			break
		}
		at++
	}
	return &turns[at]
}

// template is text with places to fill in, split once when the script is read.
type template []segment

type segment struct {
	literal string
	field   string // "prompt", "results" or "last"; "" is a literal
}

func parseTemplate(text string) template {
	var t template
	for text != "" {
		open := strings.Index(text, "{{")
		if open < 0 {
			break
		}
		field, rest, ok := strings.Cut(text[open+2:], "}}")
		if !ok {
			break
		}
		switch name := strings.TrimSpace(field); name {
		case "prompt", "results", "last":
			if open > 0 {
				t = append(t, segment{literal: text[:open]})
			}
			t = append(t, segment{field: name})
			text = rest
		default: // no place of ours: braces are ordinary text
			t = append(t, segment{literal: text[:open+2]})
			text = text[open+2:]
		}
	}
	if text != "" {
		t = append(t, segment{literal: text})
	}
	return t
}

func (t template) render(c *conversation) string {
	if len(t) == 1 && t[0].field == "" {
		return t[0].literal
	}
	var b []byte
	for _, s := range t {
		if s.field == "" {
			b = append(b, s.literal...)
			continue
		}
		b = append(b, c.field(s.field)...)
	}
	return string(b)
}

// renderJSON fills the places of a JSON text: they stand inside strings.
func (t template) renderJSON(c *conversation) string {
	if len(t) == 1 && t[0].field == "" {
		return t[0].literal
	}
	var b []byte
	for _, s := range t {
		if s.field == "" {
			b = append(b, s.literal...)
			continue
		}
		quoted := gjson.AppendJSONString(nil, c.field(s.field))
		b = append(b, quoted[1:len(quoted)-1]...)
	}
	return string(b)
}
