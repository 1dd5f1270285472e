package expression

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"
)

// AsyncCall is something a script can ask its process for and await: it takes and
// returns JSON, nil for undefined. The text of an error is thrown in the script; a *CallError
// says more of what is thrown. Calls of one script run at the same time.
type AsyncCall func(ctx context.Context, arg json.RawMessage) (json.RawMessage, error)

const (
	// maxCalls bounds the calls of one script that are not done, maxRunningCalls those that run.
	maxCalls        = 10_000
	maxRunningCalls = 16
)

// calls are the calls of one running script.
type calls struct {
	ctx   context.Context
	known map[string]AsyncCall
	open  int // started and not given back; belongs to the script's goroutine
	slots chan struct{}
	done  chan settlement
	wg    sync.WaitGroup
}

// settlement is how a call ended, as helpers.js reads it.
type settlement struct {
	ID    json.RawMessage `json:"id"`
	Value json.RawMessage `json:"value,omitempty"`
	Error json.RawMessage `json:"error,omitempty"`
}

// newCalls returns the calls of a script that may run for timeout. end stops those that
// still run and waits for them.
func newCalls(ctx context.Context, timeout time.Duration, known map[string]AsyncCall) (c *calls, end func()) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	c = &calls{ctx: ctx, known: known, slots: make(chan struct{}, maxRunningCalls), done: make(chan settlement)}
	return c, func() {
		cancel()
		c.wg.Wait()
	}
}

// start begins the call {"id": …, "name": …, "arg": …}.
func (c *calls) start(arg string) error {
	var request struct {
		ID   json.RawMessage `json:"id"`
		Name string          `json:"name"`
		Arg  json.RawMessage `json:"arg"`
	}
	if err := json.Unmarshal([]byte(arg), &request); err != nil {
		return fmt.Errorf("call of a script: %w", err)
	}
	call := c.known[request.Name]
	if call == nil {
		return thrown{&Error{Message: "this.helpers." + request.Name + "() is not available here", Type: "unavailable"}}
	}
	if c.open >= maxCalls {
		return thrown{&Error{Message: fmt.Sprintf("the script has %d unanswered calls; await some of them first", c.open)}}
	}
	c.open++
	c.wg.Go(func() {
		select {
		case c.slots <- struct{}{}:
			defer func() { <-c.slots }()
		case <-c.ctx.Done():
			return
		}
		s := settlement{ID: request.ID}
		value, err := call(c.ctx, request.Arg)
		if err != nil {
			s.Error = errorJSON(err)
		} else {
			s.Value = value
		}
		select {
		case c.done <- s:
		case <-c.ctx.Done():
		}
	})
	return nil
}

func errorJSON(err error) json.RawMessage {
	failed := &CallError{Message: err.Error()}
	_ = errors.As(err, &failed)
	raw, err := json.Marshal(failed)
	if err != nil {
		raw, _ = json.Marshal(CallError{Message: failed.Message}) // a text always encodes
	}
	return raw
}

// CallError is an error of an AsyncCall with what scripts find in it.
type CallError struct {
	Name    string `json:"name,omitempty"`
	Message string `json:"message"`
	// Fields are set on what is thrown.
	Fields map[string]any `json:"fields,omitempty"`
}

func (e *CallError) Error() string { return e.Message }

// settled waits until a call has ended, or for some milliseconds ("" is for ever), and
// returns all that have as JSON; "" is none.
func (c *calls) settled(ms string) (string, error) {
	if c.open == 0 {
		return "", nil
	}
	var over <-chan time.Time
	if wait, err := strconv.ParseFloat(ms, 64); err == nil {
		timer := time.NewTimer(time.Duration(wait * float64(time.Millisecond)))
		defer timer.Stop()
		over = timer.C
	}
	var list []settlement
	select {
	case s := <-c.done:
		list = append(list, s)
	case <-over:
		return "", nil
	case <-c.ctx.Done():
		return "", nil // the script is stopped next
	}
	for more := true; more; {
		select {
		case s := <-c.done:
			list = append(list, s)
		default:
			more = false
		}
	}
	c.open -= len(list)
	raw, err := json.Marshal(list)
	return string(raw), err
}
