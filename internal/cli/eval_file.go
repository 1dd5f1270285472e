package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// evalCase is a line of a file of cases.
type evalCase struct {
	ID       json.RawMessage `json:"id"`
	Expr     string          `json:"expr"`
	JSON     json.RawMessage `json:"json"`
	Items    json.RawMessage `json:"items"`
	Item     int             `json:"item"`
	Timezone string          `json:"timezone"`
	Workflow string          `json:"workflow"`
	Node     string          `json:"node"`
	RunData  string          `json:"runData"`
	Run      *int            `json:"run"`

	// What is expected, for --check.
	Type   string          `json:"type"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`

	input string
}

// evalAnswer is what became of a case.
type evalAnswer struct {
	ID     json.RawMessage  `json:"id,omitempty"`
	Type   string           `json:"type,omitempty"`
	Result json.RawMessage  `json:"result,omitempty"`
	Error  *evalAnswerError `json:"error,omitempty"`
}

type evalAnswerError struct {
	Name        string `json:"name,omitempty"`
	Message     string `json:"message"`
	Description string `json:"description,omitempty"`
	Type        string `json:"type,omitempty"`
}

func answerOf(id json.RawMessage, v expression.Value, failed *expression.Error) evalAnswer {
	if failed != nil {
		name := failed.Name
		if name == "" {
			name = "ExpressionError"
		}
		return evalAnswer{ID: id, Error: &evalAnswerError{name, failed.Message, failed.Description, failed.Type}}
	}
	return evalAnswer{ID: id, Type: valueType(v), Result: v.JSON}
}

// valueType is the JavaScript type of a value, with array, null and NaN told apart.
func valueType(v expression.Value) string {
	switch {
	case v.Kind != "":
		return v.Kind
	case len(v.JSON) == 0:
		return "undefined"
	}
	switch v.JSON[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// given are the items of a case's own input, nil when it has none. An item is its JSON, or
// {"json": …} when that and what else an item has is all there is.
func (c *evalCase) given() (workflow.Items, error) {
	if len(c.JSON) > 0 {
		if !isObject(c.JSON) {
			return nil, fmt.Errorf("the item %s is no JSON object", shorten(string(c.JSON), 60))
		}
		return workflow.Items{{JSON: c.JSON, PairedItem: workflow.Paired(0)}}, nil
	}
	if len(c.Items) == 0 {
		return nil, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(c.Items, &list); err != nil {
		return nil, fmt.Errorf("items: want a list of JSON objects: %w", err)
	}
	items := make(workflow.Items, len(list))
	for i, raw := range list {
		if !isObject(raw) {
			return nil, fmt.Errorf("items: %s at index %d is no JSON object", shorten(string(raw), 60), i)
		}
		items[i] = workflow.Item{JSON: raw, PairedItem: workflow.Paired(i)}
	}
	return items, nil
}

func isObject(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && raw[0] == '{'
}

// maxCaseBytes bounds a line of a file of cases.
const maxCaseBytes = 64 << 20

func (o *evalOptions) evalFile(cmd *cobra.Command) error {
	var in io.Reader = cmd.InOrStdin()
	if o.file != "-" {
		f, err := os.Open(o.file)
		if err != nil {
			return fmt.Errorf("--file: %w", err)
		}
		defer f.Close()
		in = f
	}
	e, err := newEvaluation()
	if err != nil {
		return err
	}
	defer e.close()
	out := bufio.NewWriter(cmd.OutOrStdout())
	defer out.Flush()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxCaseBytes)
	count, failed, differ := 0, 0, 0
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		c := evalCase{Timezone: o.timezone, Workflow: o.workflow, Node: o.node, RunData: o.runData, Item: o.item, input: o.input}
		err := json.Unmarshal(line, &c)
		if err == nil && c.Expr == "" {
			err = errors.New("it has no expr")
		}
		if err != nil {
			return fmt.Errorf(`%s, line %d: want an object such as {"expr": "={{ $json.a }}", "json": {"a": 1}}: %w`, o.file, n, err)
		}
		if c.ID == nil {
			c.ID = json.RawMessage(fmt.Sprint(n))
		}
		if o.json != "" && c.JSON == nil && c.Items == nil {
			if c.JSON, err = readValue("--json", o.json, nil); err != nil {
				return err
			}
		}
		scope, err := e.scope(cmd.Context(), &c)
		if err != nil {
			return fmt.Errorf("%s, line %d: %w", o.file, n, err)
		}
		value, err := e.evaluator.Evaluate(cmd.Context(), scope, c.Item, c.Expr)
		failure := (*expression.Error)(nil)
		if err != nil && !errors.As(err, &failure) {
			return fmt.Errorf("%s, line %d: %w", o.file, n, err)
		}
		count++
		if failure != nil {
			failed++
		}
		if o.check {
			if difference := c.difference(value, failure); difference != "" {
				differ++
				fmt.Fprintf(out, "%s  %s\n    %s\n", c.name(), c.Expr, difference)
			}
			continue
		}
		if err := writeLine(out, answerOf(c.ID, value, failure)); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read %s: %w", o.file, err)
	}
	if o.check {
		fmt.Fprintf(out, "%d cases, %d as expected, %d not\n", count, count-differ, differ)
		failed = differ
	}
	if failed > 0 {
		return &exitError{code: service.ExitFailed}
	}
	return nil
}

func (c *evalCase) name() string {
	var text string
	if json.Unmarshal(c.ID, &text) == nil {
		return text
	}
	return string(c.ID)
}

// difference says how an outcome differs from the one that a case expects; "" when it does
// not.
func (c *evalCase) difference(v expression.Value, failed *expression.Error) string {
	switch {
	case c.Error != nil && failed == nil:
		return fmt.Sprintf("expected the error %q, got %s", c.Error.Message, valueText(v))
	case c.Error != nil && !strings.EqualFold(failed.Message, c.Error.Message):
		return fmt.Sprintf("expected the error %q, got the error %q", c.Error.Message, failed.Message)
	case c.Error != nil:
		return ""
	case failed != nil:
		return fmt.Sprintf("expected %s %s, got the error %q", c.Type, c.Result, failed.Message)
	}
	switch c.Type {
	case "undefined", "null", "NaN", "Infinity", "-Infinity":
		if valueType(v) != c.Type {
			return fmt.Sprintf("expected %s, got %s", c.Type, valueText(v))
		}
		return ""
	}
	if !equalJSON(c.Result, v.JSON) {
		return fmt.Sprintf("expected %s, got %s", c.Result, valueText(v))
	}
	return ""
}

func equalJSON(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	f, isNumber := x.(float64)
	g, both := y.(float64)
	if isNumber && both {
		return f == g || math.Abs(f-g) <= 1e-12*math.Abs(f) // engines round the last digit differently
	}
	return reflect.DeepEqual(x, y)
}

// writeLine prints a value as a line of JSON.
func writeLine(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

func indented(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return raw
	}
	return b.Bytes()
}
