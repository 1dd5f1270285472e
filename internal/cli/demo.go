package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"go.uber.org/zap/zapcore"

	"github.com/reprise-engine/reprise/examples"
	"github.com/reprise-engine/reprise/internal/credentials"
	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/internal/stack"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

const (
	demoQuestion = "Charge the card with 42 euros, check the sum of 6 * 7, and shout thanks."
	demoGate     = "Ask a person"
	// demoLease is how long the killed worker's job waits for a sign of life.
	demoLease = time.Second
	// demoTimeout ends a demo that hangs; the time that a person takes does not count.
	demoTimeout = 60 * time.Second
)

// demoInstant are the tools that answer at once.
var demoInstant = []string{"Calculator", "Shout"}

func demoCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See an Agent ask for permission and survive the death of a worker; needs no key, server or file.",
		Long: `Run an Agent with three tools on embedded servers and a mock model. One tool charges a
card, and a person is asked first: you, on this terminal. The worker that runs the tool is
killed in the middle, another one takes over, and the card is charged once.

Without a terminal, or with --yes, the demo answers the question itself.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithCancelCause(cmd.Context())
			defer cancel(nil)
			timer := time.AfterFunc(demoTimeout, func() { cancel(fmt.Errorf("the demo did not end within %s", demoTimeout)) })
			defer timer.Stop()
			d := &demo{
				out: cmd.OutOrStdout(), style: styleFor(cmd.OutOrStdout()), began: time.Now(), timer: timer,
				finished: make(chan string, 64), parked: make(chan struct{}, 1),
			}
			if !yes {
				d.prompt = newPrompt(cmd)
			}
			defer d.close()
			err := d.play(ctx)
			switch {
			case err != nil && cmd.Context().Err() != nil:
				return &exitError{service.ExitFailed, errors.New("interrupted")}
			case err != nil && ctx.Err() != nil:
				return &exitError{service.ExitFailed, context.Cause(ctx)}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask: approve")
	cmd.AddCommand(workerCommand())
	return cmd
}

// demo is the play: its stage and its props.
type demo struct {
	out    io.Writer
	style  style
	began  time.Time
	stack  *stack.Stack
	ledger *ledger
	closes []func()
	prompt *prompt     // nil when nobody is asked
	timer  *time.Timer // ends the demo

	mu       sync.Mutex // guards out
	finished chan string
	parked   chan struct{} // the question was asked
}

func (d *demo) close() {
	for _, f := range slices.Backward(d.closes) {
		f()
	}
}

// say prints one line of the story.
func (d *demo) say(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := d.style.dim(fmt.Sprintf("%5.2fs", time.Since(d.began).Seconds()))
	fmt.Fprintf(d.out, "%s  %s\n", at, fmt.Sprintf(format, args...))
}

func (d *demo) play(ctx context.Context) error {
	if err := d.open(ctx); err != nil {
		return err
	}
	a, err := d.worker(ctx)
	if err != nil {
		return err
	}
	d.say("worker A runs (process %d)", a.pid())
	id := engine.ExecutionID(uuid.NewString())
	stop, err := d.stack.Conn.WatchLive(id, d.live)
	if err != nil {
		return err
	}
	defer stop()
	d.say("submitted: %q", demoQuestion)
	item, err := json.Marshal(map[string]string{"question": demoQuestion, "ledger": d.ledger.url})
	if err != nil {
		return err
	}
	input := workflow.Items{{JSON: item}}
	if _, err := d.stack.Conn.Submit(ctx, &queue.Submission{ID: id, Workflow: examples.Demo, Mode: "cli", Input: input}); err != nil {
		return err
	}
	approved, err := d.ask(ctx, id)
	if err != nil {
		return err
	}
	if !approved {
		x, err := d.stack.Conn.WaitFinished(ctx, id, true, false)
		if err != nil {
			return err
		}
		return d.end(x, false)
	}
	if err := d.killInTheMiddle(ctx, a); err != nil {
		return err
	}
	b, err := d.worker(ctx)
	if err != nil {
		return err
	}
	d.say("worker B runs (process %d): it gets the job when A has not been heard of for %s", b.pid(), demoLease)
	second, err := d.await(ctx)
	if err != nil {
		return err
	}
	d.say("worker B asks the bank again, with key %s: charge %s, made before", d.style.bold(second.Key), second.ID)
	x, err := d.stack.Conn.WaitFinished(ctx, id, true, false)
	if err != nil {
		return err
	}
	return d.end(x, true)
}

// open starts the servers, a coordinator, the mock model and the bank.
func (d *demo) open(ctx context.Context) error {
	bank, err := startLedger()
	if err != nil {
		return err
	}
	d.ledger = bank
	d.closes = append(d.closes, func() { _ = bank.stop() })
	// A killed worker is part of the play: warnings about it would only confuse.
	d.stack, err = stack.Start(ctx, stack.Config{Workers: -1, MockLLM: true, Lease: demoLease, Log: consoleLog(zapcore.ErrorLevel)})
	if err != nil {
		return err
	}
	d.closes = append(d.closes, d.stack.Stop)
	d.say("started: NATS, Redis (%s), a mock model, a coordinator, and a bank that charges cards", d.stack.RedisKind)
	return nil
}

// worker starts a worker as a process of its own.
func (d *demo) worker(ctx context.Context) (*child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	c, err := startChild(ctx, program, "demo", "worker", "--nats", d.stack.NATSURL, "--mock-url", d.stack.MockURL, "--lease", demoLease.String())
	if err != nil {
		return nil, err
	}
	d.closes = append(d.closes, c.kill)
	return c, nil
}

// ask waits until the other tools are done and all that is left waits for a person,
// and gets the decision.
func (d *demo) ask(ctx context.Context, id engine.ExecutionID) (approved bool, err error) {
	patience := time.After(5 * time.Second) // a notice may be lost
	for waiting, parked := slices.Clone(demoInstant), false; len(waiting) > 0 || !parked; {
		select {
		case name := <-d.finished:
			waiting = slices.DeleteFunc(waiting, func(w string) bool { return w == name })
		case <-d.parked:
			parked = true
		case <-patience:
			waiting, parked = nil, true
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	open, err := openApprovals(ctx, d.stack.Conn, id)
	if err != nil {
		return false, err
	}
	if len(open) != 1 {
		return false, fmt.Errorf("%d questions wait for a person instead of one", len(open))
	}
	d.say("the Agent must not charge a card by itself: the execution waits, and holds no worker")
	decision := &engine.Decision{Approved: true, By: "the demo", At: time.Now().UnixMilli()}
	if d.prompt != nil {
		d.timer.Stop()
		if decision, err = d.prompt.ask(ctx, &open[0], nil); err != nil {
			return false, err
		}
		d.timer.Reset(demoTimeout)
	} else {
		d.say("the question: may it run %s with %s? %s", d.style.bold(open[0].Tool), open[0].Arguments, d.style.dim("(nobody is asked here: the demo says yes)"))
	}
	if err := d.stack.Conn.Decide(ctx, queue.DecideRequest{ID: open[0].ID, Bind: open[0].Bind, Decision: *decision}); err != nil {
		return false, err
	}
	outcome := engine.OutcomeDenied
	if decision.Approved {
		outcome = engine.OutcomeApproved
	}
	d.say("the answer: %s", d.style.bold(decisionText(outcome, decision, false)))
	return decision.Approved, nil
}

// killInTheMiddle kills the worker when the bank has charged the card but has
// not answered.
func (d *demo) killInTheMiddle(ctx context.Context, a *child) error {
	first, err := d.await(ctx)
	if err != nil {
		return err
	}
	d.say("worker A asks the bank, with key %s: charged %g euros; its answer is on the way …", d.style.bold(first.Key), first.Amount)
	a.kill()
	d.say("%s", d.style.red("worker A is killed (SIGKILL): nobody knows whether the card was charged"))
	return nil
}

// await waits for the next request to the bank.
func (d *demo) await(ctx context.Context) (charge, error) {
	select {
	case c := <-d.ledger.asked:
		return c, nil
	case <-ctx.Done():
		return charge{}, ctx.Err()
	}
}

// live tells what the execution does.
func (d *demo) live(l queue.Live) {
	switch {
	case l.Kind == engine.LiveNodeStarted && l.Node == "AI Agent":
		d.say("the Agent starts and asks its model")
	case l.Node == demoGate:
		if l.Status == engine.StatusWaiting {
			select {
			case d.parked <- struct{}{}:
			default:
			}
		}
	case l.Kind == engine.LiveNodeStarted && l.Type == workflow.Tool:
		d.say("tool %s starts", d.style.bold(l.Node))
	case l.Kind == engine.LiveNodeFinished && l.Type == workflow.Tool:
		d.say("tool %s %s", d.style.bold(l.Node), d.outcome(l))
		select {
		case d.finished <- l.Node:
		default:
		}
	case l.Kind == engine.LiveExecutionFinished && l.Status.Finished():
		d.say("finished: %s", d.outcome(l))
	}
}

func (d *demo) outcome(l queue.Live) string {
	if l.Status == engine.StatusSuccess {
		return d.style.green("done")
	}
	return d.style.red(strings.TrimSpace(string(l.Status) + " " + l.Error))
}

// end draws the run and looks whether the demo showed what it promises.
func (d *demo) end(x *queue.Execution, approved bool) error {
	data, err := runDataOf(x)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintln(d.out)
	printExecution(d.out, d.style, x, data)
	fmt.Fprintln(d.out)
	answer := answerText(data.ResultData.RunData, data.ResultData.LastNodeExecuted)
	if !approved {
		if charges := d.ledger.all(); len(charges) > 0 {
			return &exitError{service.ExitFailed, fmt.Errorf("the card was charged %d times although you said no", len(charges))}
		}
		fmt.Fprintf(d.out, "%s the bank was never asked. Approve next time to see a worker killed in the middle.\n", d.style.green("You said no:"))
		return nil
	}
	if err := d.check(x, answer); err != nil {
		return &exitError{service.ExitFailed, err}
	}
	fmt.Fprintf(d.out, "%s two workers asked the bank, under one idempotency key; the tools that were done did not run again.\n",
		d.style.green("The card was charged once:"))
	fmt.Fprint(d.out, `
What to try next:
  reprise run FILE.json          run a workflow of your own (n8n's format)
  reprise dev                    keep everything running; submit, list and watch executions
  reprise bench                  executions per second on this machine
`)
	return nil
}

func (d *demo) check(x *queue.Execution, answer string) error {
	if x.Status != engine.StatusSuccess {
		return fmt.Errorf("the execution ended with status %s", x.Status)
	}
	for _, part := range []string{"42", "ch_1"} {
		if !strings.Contains(answer, part) {
			return fmt.Errorf("the answer lacks %q: %s", part, answer)
		}
	}
	charges := d.ledger.all()
	if len(charges) != 1 {
		return fmt.Errorf("the card was charged %d times instead of once", len(charges))
	}
	for key, c := range charges {
		if c.Asked != 2 {
			return fmt.Errorf("the bank was asked %d times for the charge %s instead of twice", c.Asked, key)
		}
	}
	return nil
}

// workerCommand is the demo's worker, a process that can be killed.
func workerCommand() *cobra.Command {
	var nats, mock string
	var lease time.Duration
	cmd := &cobra.Command{
		Use: "worker", Short: "Run a worker of the demo.", Args: cobra.NoArgs, Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if nats == "" {
				return errors.New("--nats is missing: this is the demo's worker; run cmd/worker for one of your own")
			}
			secrets := &credentials.Store{}
			if mock != "" {
				secrets.Add(stack.MockCredentialID, "Mock LLM", "openAiApi", map[string]any{"apiKey": "mock", "url": mock})
			}
			p, err := service.StartWorker(cmd.Context(), service.Worker{
				NATSURL: nats, Pools: []string{"default"}, Concurrency: 8, Lease: lease, Credentials: secrets, MaxResultBytes: 64 << 20, Egress: "any",
			}, consoleLog(zapcore.ErrorLevel))
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), childReady)
			<-cmd.Context().Done()
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			p.Stop(ctx)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&nats, "nats", os.Getenv("REPRISE_NATS_URL"), "NATS server")
	f.StringVar(&mock, "mock-url", "", "base URL of the mock model")
	f.DurationVar(&lease, "lease", demoLease, "how long a job may be without a sign of life")
	return cmd
}
