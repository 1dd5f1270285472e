package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-engine/reprise/pkg/queue"
)

const (
	// topEvery is how often the picture is drawn.
	topEvery = time.Second
	// topCounts is how old the numbers of executions and dead letters may be, for which
	// servers are asked.
	topCounts = 5 * time.Second
	// topSpan is the time over which rates are measured.
	topSpan = 10 * time.Second
)

func topCommand() *cobra.Command {
	var s servers
	var asOutput string
	var once bool
	cmd := &cobra.Command{
		Use: "top", Short: "Watch pools, workers, coordinators and executions live.", Args: cobra.NoArgs,
		Long: `Show what "reprise queue" shows, and what coordinators do, once a second until q or Ctrl-C: the jobs
that wait, are published and run, by pool; workers and their slots; coordinators with the jobs
they hold back, how far they lag, and the executions that begin and end there per second; executions by
status and dead letters.

With --once, or when the output is no terminal, it prints one picture and ends. Machines
read --output json.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := output(asOutput)
			if err := o.set(outputText, outputJSON); err != nil {
				return err
			}
			return withConn(cmd, &s, func(ctx context.Context, conn *queue.Conn) error {
				out := cmd.OutOrStdout()
				top := newTop(conn)
				if screen, ok := screenOf(out); ok && !once && o == outputText {
					return top.live(ctx, screen, cmd.InOrStdin())
				}
				if err := top.look(ctx); err != nil {
					return err
				}
				if o == outputJSON {
					return printJSON(out, top.picture())
				}
				top.draw(out, styleFor(out))
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "print one picture and end")
	cmd.Flags().StringVar(&asOutput, "output", string(outputText), "text or json")
	s.natsFlag(cmd, defaultNATS, "NATS server")
	return cmd
}

// overview is what top asks.
type overview interface {
	Queue(ctx context.Context, counts bool) (*queue.QueueAnswer, error)
	CountDead(ctx context.Context) (int, error)
}

// top is the state of a live picture.
type top struct {
	from    overview
	now     *queue.QueueAnswer // the last answer, with the last counts
	dead    int                // letters; -1 is unknown
	counted time.Time
	rates   map[string]*rates // by coordinator
	err     error             // why there is no newer answer
}

func newTop(from overview) *top { return &top{from: from, dead: -1, rates: map[string]*rates{}} }

// picture is top's output for machines.
type picture struct {
	*queue.QueueAnswer
	// DeadLetters that are kept; null when they cannot be counted.
	DeadLetters *int `json:"deadLetters"`
}

func (t *top) picture() picture {
	p := picture{QueueAnswer: t.now}
	if t.dead >= 0 {
		p.DeadLetters = &t.dead
	}
	return p
}

// look asks a coordinator. When that fails the last picture stays, with the error.
func (t *top) look(ctx context.Context) error {
	count := time.Since(t.counted) >= topCounts
	answer, err := t.from.Queue(ctx, count)
	if t.err = err; err != nil {
		return err
	}
	if count {
		t.counted = time.Now()
		if t.dead, err = t.from.CountDead(ctx); err != nil {
			t.dead = -1 // the stream is away; the rest is worth seeing
		}
	} else if t.now != nil {
		answer.Executions, answer.Stuck, answer.StuckExecutions = t.now.Executions, t.now.Stuck, t.now.StuckExecutions
	}
	t.now = answer
	seen := map[string]bool{}
	for _, c := range answer.Fleet {
		seen[c.ID] = true
		if t.rates[c.ID] == nil {
			t.rates[c.ID] = &rates{}
		}
		t.rates[c.ID].add(c)
	}
	for id := range t.rates {
		if !seen[id] {
			delete(t.rates, id)
		}
	}
	return nil
}

// rates are measured between what a coordinator has said lately.
type rates struct{ said []queue.QueueCoordinator }

func (r *rates) add(c queue.QueueCoordinator) {
	// Another coordinator than the last time may answer, which knows an older notice.
	if n := len(r.said); n > 0 && c.Seen <= r.said[n-1].Seen {
		return
	}
	r.said = append(r.said, c)
	for len(r.said) > 2 && c.Seen-r.said[1].Seen >= topSpan.Milliseconds() {
		r.said = r.said[1:]
	}
}

// perSecond is how many executions began and ended; ok is false until that is known.
func (r *rates) perSecond() (started, finished float64, ok bool) {
	if len(r.said) < 2 {
		return 0, 0, false
	}
	first, last := r.said[0], r.said[len(r.said)-1]
	seconds := float64(last.Seen-first.Seen) / 1000
	return float64(last.Started-first.Started) / seconds, float64(last.Finished-first.Finished) / seconds, true
}

// draw writes the picture.
func (t *top) draw(out io.Writer, style style) {
	if t.now == nil {
		fmt.Fprintln(out, "no coordinator has answered yet")
		return
	}
	a := t.now
	var started, finished float64
	known := false
	for _, r := range t.rates {
		if s, f, ok := r.perSecond(); ok {
			started, finished, known = started+s, finished+f, true
		}
	}
	fmt.Fprintf(out, "%s  %s   started %s   finished %s   dead letters: %s\n\n", style.bold("reprise"), time.UnixMilli(a.At).Format(time.TimeOnly),
		rate(started, known), rate(finished, known), t.deadText(style))
	printQueue(out, style, a)
	if len(a.Fleet) > 0 {
		fmt.Fprintln(out, "\n"+style.dim(fmt.Sprintf("%-36s  %7s  %8s  %10s  %10s", "COORDINATOR", "HELD", "LAG", "STARTED", "FINISHED")))
	}
	for _, c := range a.Fleet {
		var s, f float64
		known := false
		if r := t.rates[c.ID]; r != nil {
			s, f, known = r.perSecond()
		}
		lag := (time.Duration(c.LagMillis) * time.Millisecond).String()
		fmt.Fprintf(out, "%-36s  %7d  %8s  %10s  %10s\n", c.ID, c.Held, lag, rate(s, known), rate(f, known))
	}
}

func (t *top) deadText(style style) string {
	switch {
	case t.dead < 0:
		return "?"
	case t.dead > 0:
		return style.red(fmt.Sprint(t.dead))
	}
	return "0"
}

func rate(perSecond float64, known bool) string {
	if !known {
		return "-/s"
	}
	return fmt.Sprintf("%.1f/s", perSecond)
}
