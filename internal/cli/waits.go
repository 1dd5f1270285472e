package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// waits deals with what an execution and those below it wait for.
type waits struct {
	conn  *queue.Conn
	out   io.Writer // for people
	style style
	// line is for progress that is overwritten; nil without a terminal.
	line io.Writer
	// ask, when not nil, asks questions here; web says that questions and webhooks
	// can be answered over HTTP.
	ask *prompt
	web bool
	// patient waits for whatever comes, and only tells what that is.
	patient bool
	// hold, when not nil, keeps other output from the terminal while a question is there.
	hold func(on bool)

	told map[string]bool // by token, what was said once
	left map[string]bool // questions that the person left open

	nextFamily time.Time // when executions are listed again
}

func newWaits(cmd *cobra.Command, conn *queue.Conn) *waits {
	w := &waits{conn: conn, out: cmd.ErrOrStderr(), style: styleFor(cmd.ErrOrStderr()), told: map[string]bool{}, left: map[string]bool{}}
	if isTerminal(w.out) {
		w.line = w.out
	}
	return w
}

// look deals with what x waits for. It reports whether all that is left needs
// somebody who cannot answer here.
func (w *waits) look(ctx context.Context, x *queue.Execution) (enough bool, err error) {
	family, all, err := w.family(ctx, x)
	if err != nil {
		return false, err
	}
	goesOn := !all
	var soonest int64
	for _, member := range family {
		if member.Status != engine.StatusWaiting {
			goesOn = true
		}
		for i := range member.Waiting {
			wait := &member.Waiting[i]
			served, err := w.serve(ctx, member, wait)
			if err != nil {
				return false, err
			}
			switch wait.Kind {
			case engine.WaitTime:
				goesOn = true
				if soonest == 0 || wait.Until < soonest {
					soonest = wait.Until
				}
			case engine.WaitChildren:
				// Its children speak for themselves; without any it is about to go on.
				goesOn = goesOn || !hasChild(family, member.ID)
			default:
				goesOn = goesOn || served
			}
		}
	}
	if w.line != nil && soonest > 0 && x.Status == engine.StatusWaiting {
		until := time.UnixMilli(soonest)
		format := time.TimeOnly
		if time.Until(until) > 12*time.Hour {
			format = time.DateTime
		}
		fmt.Fprintf(w.line, "\r\x1b[K%s", w.style.dim("waiting until "+until.Format(format)+" (Ctrl-C stops)"))
	}
	return !goesOn && !w.patient, nil
}

func hasChild(family []*queue.Execution, id engine.ExecutionID) bool {
	return slices.ContainsFunc(family, func(x *queue.Execution) bool { return x.Parent == id })
}

// serve does what can be done about one wait and reports whether it can end that way.
func (w *waits) serve(ctx context.Context, x *queue.Execution, wait *queue.Waiting) (bool, error) {
	switch wait.Kind {
	case engine.WaitApproval:
		if w.ask != nil && !w.left[wait.Token] {
			return w.question(ctx, wait.Token)
		}
		w.tell(x, wait)
		return w.web, nil
	case engine.WaitWebhook:
		w.tell(x, wait)
		return w.web, nil
	}
	return false, nil
}

// tell says once how a wait can be ended from elsewhere.
func (w *waits) tell(x *queue.Execution, wait *queue.Waiting) {
	if !w.web && !w.patient || w.told[wait.Token] {
		return
	}
	w.told[wait.Token] = true
	how := wait.URL
	if how == "" {
		how = waitingHint(x, wait)
	}
	if w.line != nil {
		fmt.Fprint(w.line, "\r\x1b[K")
	}
	fmt.Fprintf(w.out, "%s: %s\n", waitingText(wait), how)
}

// question asks the person here; a question that is answered elsewhere, or
// expires, while the person thinks is over.
func (w *waits) question(ctx context.Context, token string) (bool, error) {
	a, err := w.conn.Approval(ctx, token)
	if err != nil {
		return false, err
	}
	if a.Outcome != "" {
		return true, nil
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	if w.line != nil {
		fmt.Fprint(w.line, "\r\x1b[K")
	}
	if w.hold != nil {
		w.hold(true)
		defer w.hold(false)
	}
	decision, err := w.ask.ask(ctx, a, w.decided(watching, token))
	switch {
	case errors.Is(err, errNoAnswerGiven):
		w.left[token] = true
		return false, nil
	case err != nil:
		return false, err
	case decision == nil:
		if a, err = w.conn.Approval(ctx, token); err == nil {
			fmt.Fprintf(w.out, "  the question is closed: %s\n", decisionText(a.Outcome, a.Decision, false))
		}
		return true, nil
	}
	err = w.conn.Decide(ctx, queue.DecideRequest{ID: token, Bind: a.Bind, Decision: *decision})
	if problem := (*queue.Problem)(nil); errors.As(err, &problem) {
		fmt.Fprintln(w.out, "  not accepted:", refusal(ctx, w.conn, token, err))
		return true, nil
	}
	return true, err
}

// decided is closed when a question is not open any more; it ends with ctx.
func (w *waits) decided(ctx context.Context, token string) <-chan struct{} {
	over := make(chan struct{})
	go func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if a, err := w.conn.Approval(ctx, token); err == nil && a.Outcome != "" {
				close(over)
				return
			}
		}
	}()
	return over
}

// familyShare is how many times longer than listing executions took the pause
// before the next time is: on servers with many, looking must not become their load.
const familyShare = 20

// family returns x and, when it waits for executions it started, those of them
// and of their children that are not over. all is false when they were listed so
// recently that they are not listed again yet.
func (w *waits) family(ctx context.Context, x *queue.Execution) (family []*queue.Execution, all bool, err error) {
	family = []*queue.Execution{x}
	if !slices.ContainsFunc(x.Waiting, func(wait queue.Waiting) bool { return wait.Kind == engine.WaitChildren }) {
		return family, true, nil
	}
	began := time.Now()
	if began.Before(w.nextFamily) {
		return family, false, nil
	}
	parents, open, err := w.started(ctx, x)
	if err != nil {
		return nil, false, err
	}
	w.nextFamily = time.Now().Add(familyShare * time.Since(began))
	for _, id := range open {
		if !below(parents, id, x.ID) {
			continue
		}
		child, err := w.conn.Get(ctx, id, false)
		if err != nil {
			return nil, false, err
		}
		if !child.Status.Finished() {
			family = append(family, child)
		}
	}
	return family, true, nil
}

// started lists the executions that others started since x began: their parents,
// and which are not over.
func (w *waits) started(ctx context.Context, x *queue.Execution) (parents map[engine.ExecutionID]engine.ExecutionID, open []engine.ExecutionID, err error) {
	parents = map[engine.ExecutionID]engine.ExecutionID{}
	for r := (queue.ListRequest{Limit: listPage}); ; {
		page, err := w.conn.List(ctx, r)
		if err != nil {
			return nil, nil, err
		}
		for _, other := range page.Executions {
			if other.StartedAt < x.StartedAt { // the list is newest first
				return parents, open, nil
			}
			if other.Parent == "" {
				continue
			}
			parents[other.ID] = other.Parent
			if !other.Status.Finished() {
				open = append(open, other.ID)
			}
		}
		if page.Cursor == "" {
			return parents, open, nil
		}
		r.Cursor = page.Cursor
	}
}

// below reports whether an execution was started by root, or by one that was.
func below(parents map[engine.ExecutionID]engine.ExecutionID, id, root engine.ExecutionID) bool {
	for range len(parents) {
		if id = parents[id]; id == root {
			return true
		}
	}
	return false
}

// kindText says what is waited for.
func kindText(w *queue.Waiting) string {
	switch w.Kind {
	case engine.WaitApproval:
		return "for a decision"
	case engine.WaitWebhook:
		if len(w.Form) > 0 {
			return "for a form"
		}
		return "for a webhook"
	case engine.WaitChildren:
		return "for executions it started"
	}
	return "for its time"
}

// waitingText says what is waited for, and until when.
func waitingText(w *queue.Waiting) string {
	text := w.Node + " waits " + kindText(w)
	if w.Until > 0 {
		text += " until " + clock(w.Until)
	}
	return text
}

// waitingHint is how to answer one wait from a command line.
func waitingHint(x *queue.Execution, w *queue.Waiting) string {
	switch w.Kind {
	case engine.WaitApproval:
		return "reprise executions approve " + w.Token
	case engine.WaitWebhook:
		if len(w.Form) > 0 {
			return "its page, which coordinators with REPRISE_HTTP_ADDR show"
		}
		return "reprise executions resume " + string(x.ID)
	}
	return ""
}

// kinds lists what an execution waits for, in words.
func kinds(x *queue.Execution) string {
	var words []string
	for i := range x.Waiting {
		word := strings.TrimPrefix(kindText(&x.Waiting[i]), "for ")
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return strings.Join(words, " and ")
}
