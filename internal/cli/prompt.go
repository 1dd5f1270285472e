package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// errNoAnswerGiven is returned when the person closed the input instead of
// answering.
var errNoAnswerGiven = errors.New("no answer was given")

// prompt asks a person on a terminal.
type prompt struct {
	in    io.Reader
	out   io.Writer
	style style
	by    string // who answers, for the record

	once  sync.Once
	want  chan struct{} // asks for a line
	lines chan string   // the lines asked for; closed at the end of the input
	asked bool          // a line was asked for and has not come
}

// newPrompt is nil when there is nobody to ask: the input and the error output
// must be terminals.
func newPrompt(cmd *cobra.Command) *prompt {
	if !isTerminal(cmd.InOrStdin()) || !isTerminal(cmd.ErrOrStderr()) {
		return nil
	}
	return &prompt{in: cmd.InOrStdin(), out: cmd.ErrOrStderr(), style: styleFor(cmd.ErrOrStderr()), by: loginName()}
}

// read reads lines as they are asked for. A read of a terminal cannot be
// interrupted, so its goroutine ends with the program.
func (p *prompt) read() {
	p.want, p.lines = make(chan struct{}, 1), make(chan string, 1)
	go func() {
		defer close(p.lines)
		scanner := bufio.NewScanner(p.in)
		for range p.want {
			if !scanner.Scan() {
				return
			}
			p.lines <- scanner.Text()
		}
	}()
}

// line reads one line. over, when it is closed first, makes the question moot: then
// it reports false.
func (p *prompt) line(ctx context.Context, over <-chan struct{}) (text string, answered bool, err error) {
	p.once.Do(p.read)
	if !p.asked {
		p.asked = true
		p.want <- struct{}{}
	}
	select {
	case text, ok := <-p.lines:
		if !ok { // for good: no line is asked for again
			return "", false, errNoAnswerGiven
		}
		p.asked = false
		return strings.TrimSpace(text), true, nil
	case <-over:
		return "", false, nil
	case <-ctx.Done():
		return "", false, ctx.Err()
	}
}

// forget drops what was typed before a question was shown: it cannot be meant for it.
func (p *prompt) forget() {
	if f, ok := p.in.(*os.File); ok {
		flush(f)
	}
	select {
	case _, ok := <-p.lines: // nil, and so never ready, before the first question
		if ok {
			p.asked = false
		}
	default:
	}
}

// ask shows a question and returns what the person decided; nil when over was
// closed before that.
func (p *prompt) ask(ctx context.Context, a *queue.Approval, over <-chan struct{}) (*engine.Decision, error) {
	p.forget()
	fmt.Fprintf(p.out, "\r%s\n", p.style.bold(p.style.yellow("? ")+"A decision is needed"))
	say := func(label, text string) {
		if text != "" {
			fmt.Fprintf(p.out, "  %s %s\n", p.style.dim(fmt.Sprintf("%-10s", label)), text)
		}
	}
	say("workflow", a.Workflow)
	printQuestion(say, a)
	if a.Expires > 0 {
		say("expires", expiry(a.Expires, time.Now()))
	}
	for {
		fmt.Fprintf(p.out, "  %s: ", p.choices(a))
		text, answered, err := p.line(ctx, over)
		if err != nil || !answered {
			fmt.Fprintln(p.out)
			return nil, err
		}
		if d := p.parse(a, text); d != nil {
			d.By, d.At = p.by, time.Now().UnixMilli()
			return d, nil
		}
	}
}

func (p *prompt) choices(a *queue.Approval) string {
	switch {
	case a.FreeText:
		return "your answer"
	case a.Deny == "" && a.Approve != "":
		return fmt.Sprintf("[a]pprove (%s)", a.Approve)
	}
	return "[a]pprove or [d]eny, followed by a feedback for the model if you like"
}

// parse reads an answer; nil when it is none.
func (p *prompt) parse(a *queue.Approval, text string) *engine.Decision {
	if a.FreeText {
		if text == "" {
			return nil
		}
		return &engine.Decision{Approved: true, Feedback: text}
	}
	word, feedback, _ := strings.Cut(text, " ")
	feedback = strings.TrimSpace(feedback)
	switch strings.ToLower(word) {
	case "a", "approve", "y", "yes":
		return &engine.Decision{Approved: true, Feedback: feedback}
	case "d", "deny", "n", "no":
		if a.Deny == "" && a.Approve != "" {
			return nil
		}
		return &engine.Decision{Feedback: feedback}
	}
	return nil
}
