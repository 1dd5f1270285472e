package expression

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
	"weak"

	"github.com/reprise-engine/reprise/pkg/javascript"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// evaluateScript evaluates a program in a VM. The VM stays with the scope as
// long as nobody else needs it, so that what was fetched and compiled is there
// for the next expression; a program that may have changed something gives it
// up.
func (e *Evaluator) evaluateScript(ctx context.Context, s *Scope, item int, p *program) (Value, error) {
	if e.expressions == nil {
		return Value{}, errNoEngine
	}
	reply, width, err := e.ask(ctx, s, item, p)
	if err != nil && width > 1 && ctx.Err() == nil { // the fault of a later item, perhaps
		p.alone.Store(true)
		reply, _, err = e.ask(ctx, s, item, p)
	}
	if err != nil {
		return Value{}, err
	}
	return decodeReply(reply)
}

// ask returns the VM's answer, and for how many items the program was to be evaluated for it.
func (e *Evaluator) ask(ctx context.Context, s *Scope, item int, p *program) (reply string, width int, err error) {
	vm, reused, err := e.expressions.Acquire(ctx, s.sessionKey())
	if err != nil {
		return "", 0, err
	}
	defer e.expressions.Release(vm)
	if p.mutates {
		vm.Forget()
	}
	known, _ := vm.Session.(*session)
	if known == nil {
		known = &session{}
		vm.Session = known
	}
	answers := known.of(p)
	if reply, ok := answers.answer(item); ok {
		return reply, 0, nil
	}
	width = answers.plan(s, p, item)
	host := s.host()
	id, index, count := strconv.FormatUint(p.id, 10), strconv.Itoa(item), strconv.Itoa(width)
	definition, scope := "", ""
	if !reused {
		definition, scope = p.definition(), string(s.describe())
	}
	reply, _, err = vm.Call(ctx, e.config.ExpressionTimeout, host, id, index, count, definition, scope)
	if err == nil && reply == "?" {
		reply, _, err = vm.Call(ctx, e.config.ExpressionTimeout, host, id, index, count, p.definition(), "")
	}
	if err != nil {
		vm.Forget()
		return "", width, limitError(ctx, err)
	}
	return answers.keep(item, reply), width, nil
}

// errNoEngine is returned by an Evaluator that New did not make.
var errNoEngine = errors.New("expression: this evaluator has no JavaScript engine, make it with New")

// sessionKey tells whether a VM that served a scope may serve another as it is:
// it may when both describe one run of one node with the same data. Copies of a
// scope do. Weak pointers keep nothing alive and never equal the pointer to
// something newer in the same place.
type sessionKey struct {
	execution, workflow string
	run                 int
	now                 time.Time
	node                weak.Pointer[workflow.Node]
	inputs              weak.Pointer[workflow.Items]
	arguments           weak.Pointer[byte]
}

// sessionKey is nil when the scope says too little to be told from others.
func (s *Scope) sessionKey() any {
	if s.Now.IsZero() && len(s.Inputs) == 0 {
		return nil
	}
	key := sessionKey{execution: s.Execution.ID, workflow: s.Workflow.ID, run: s.RunIndex, now: s.Now}
	if s.Node != nil {
		key.node = weak.Make(s.Node)
	}
	if len(s.Inputs) > 0 {
		key.inputs = weak.Make(&s.Inputs[0])
	}
	if len(s.ToolArguments) > 0 {
		key.arguments = weak.Make(&s.ToolArguments[0])
	}
	return key
}

// limitError makes the failures of a node of what its own script did; other
// errors are the engine's.
func limitError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var timeout *javascript.TimeoutError
	var memory *javascript.MemoryError
	switch {
	case errors.As(err, &timeout):
		return &Error{Message: fmt.Sprintf("The expression took longer than %s", timeout.After), Type: "timeout"}
	case errors.As(err, &memory):
		return &Error{Message: fmt.Sprintf("The expression needs more than %d MB of memory", memory.LimitBytes>>20), Type: "memory"}
	}
	return fmt.Errorf("evaluate an expression: %w", err)
}

// definition is the program as VMs read it.
func (p *program) definition() string {
	type part struct {
		Text string   `json:"text"`
		Code bool     `json:"code,omitempty"`
		Free []string `json:"free,omitempty"`
	}
	parts := make([]part, len(p.segments))
	for i, s := range p.segments {
		parts[i] = part{s.text, s.code, s.free}
	}
	keys := p.keys
	if p.whole {
		keys = nil
	}
	raw, _ := json.Marshal(struct {
		Parts []part   `json:"parts"`
		Keys  []string `json:"keys,omitempty"`
		Items bool     `json:"items,omitempty"`
		// Spoils has data fetched again after each item.
		Spoils bool `json:"spoils,omitempty"`
	}{parts, keys, p.whole || p.items, p.spoils})
	return string(raw)
}

// decodeReply reads what encode in expression.js wrote.
func decodeReply(reply string) (Value, error) {
	if reply == "" {
		return Value{}, errors.New("evaluate an expression: the engine gave no answer")
	}
	switch reply[0] {
	case 'j':
		return Value{JSON: json.RawMessage(reply[1:])}, nil
	case 'n':
		return Value{JSON: null, Kind: "NaN"}, nil
	case '+':
		return Value{JSON: null, Kind: "Infinity"}, nil
	case '-':
		return Value{JSON: null, Kind: "-Infinity"}, nil
	case 'e':
		err := &Error{}
		if json.Unmarshal([]byte(reply[1:]), err) == nil {
			return Value{}, err
		}
	}
	return undefined, nil
}

// description is the part of a scope that every VM is told.
type description struct {
	Workflow struct {
		ID     string `json:"id"`
		Name   string `json:"name"`
		Active bool   `json:"active"`
	} `json:"workflow"`
	Execution struct {
		ID        string `json:"id"`
		Mode      string `json:"mode"`
		RawMode   string `json:"rawMode"`
		ResumeURL string `json:"resumeUrl"`

		ResumeFormURL  string `json:"resumeFormUrl"`
		IdempotencyKey string `json:"idempotencyKey"`

		CustomData map[string]string `json:"customData,omitempty"`
	} `json:"execution"`
	Node struct {
		ID          string  `json:"id"`
		Name        string  `json:"name"`
		TypeVersion float64 `json:"typeVersion"`
		WebhookID   string  `json:"webhookId,omitempty"`
	} `json:"node"`
	RunIndex int       `json:"runIndex"`
	Previous *previous `json:"previous,omitempty"`
	Zone     string    `json:"zone"`
	Now      int64     `json:"now,omitempty"` // milliseconds
	// Code is for scripts alone.
	Code struct {
		Items int     `json:"items,omitempty"`
		GoOn  bool    `json:"goOn,omitempty"`
		Old   OldCode `json:"old,omitempty"`
	} `json:"code"`
}

type previous struct {
	Name        string `json:"name"`
	OutputIndex int    `json:"outputIndex"`
	RunIndex    int    `json:"runIndex"`
}

func (s *Scope) describe() json.RawMessage {
	raw, _ := json.Marshal(s.description()) // nothing in it can fail
	return raw
}

func (s *Scope) description() *description {
	d := &description{}
	d.Workflow.ID, d.Workflow.Name, d.Workflow.Active = s.Workflow.ID, s.Workflow.Name, s.Workflow.Active
	d.Execution.ID, d.Execution.Mode, d.Execution.RawMode = s.Execution.ID, s.executionMode(), s.Execution.Mode
	d.Execution.ResumeURL, d.Execution.ResumeFormURL = s.Execution.ResumeURL, s.Execution.ResumeFormURL
	d.Execution.IdempotencyKey, d.Execution.CustomData = s.Execution.IdempotencyKey, s.Execution.CustomData
	if s.Node != nil {
		d.Node.ID, d.Node.Name, d.Node.TypeVersion, d.Node.WebhookID = s.Node.ID, s.Node.Name, s.Node.TypeVersion, s.Node.WebhookID
	}
	d.RunIndex, d.Zone = s.RunIndex, s.Timezone
	for _, source := range s.Sources {
		if source != nil {
			d.Previous = &previous{source.PreviousNode, source.PreviousNodeOutput, source.PreviousNodeRun}
			break
		}
	}
	if !s.Now.IsZero() {
		d.Now = s.Now.UnixMilli()
	}
	return d
}
