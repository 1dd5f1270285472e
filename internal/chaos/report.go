package chaos

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is what came of a run.
type Report struct {
	Held            bool       `json:"promise_held"`
	Seed            uint64     `json:"seed"`
	DurationSeconds float64    `json:"duration_seconds"`
	SettledSeconds  float64    `json:"settled_seconds"` // until rest, after the load
	Coordinators    int        `json:"coordinators"`
	Workers         int        `json:"workers"`
	Rate            float64    `json:"executions_per_second"`
	LeaseSeconds    float64    `json:"lease_seconds"`
	Servers         string     `json:"servers"` // "redis-server", "miniredis" or "given"
	Executions      Executions `json:"executions"`
	Effects         Effects    `json:"effects"`
	Faults          []*Fault   `json:"faults"`
	Recovery        []Recovery `json:"recovery"`
	Left            Left       `json:"left_in_flight"`
	// Ended names processes that ended though nobody had killed them.
	Ended []string `json:"ended_by_themselves,omitempty"`
	// Problems says what broke the promise, in words; at most maxProblems.
	Problems []string `json:"problems,omitempty"`
}

const maxProblems = 20

// Executions is what became of the executions.
type Executions struct {
	Submitted int `json:"submitted"`
	Right     int `json:"finished_with_the_right_answer"`
	// OutcomeUnknown ended with the right answer for a tool that is not to be repeated and
	// whose worker was lost: that nobody knows what became of it.
	OutcomeUnknown int `json:"finished_with_outcome_unknown"`
	// GivenUp ended with the right answer, or error, for a job that was given to as many
	// workers as the delivery limit allows, all of which were lost.
	GivenUp int `json:"finished_with_job_given_up"`
	Wrong   int `json:"wrong"`
	Stuck   int `json:"stuck"`
}

// Recovery is how the fleet got over the faults of one kind. Times are in seconds; null
// when nothing recovered.
type Recovery struct {
	Role   string `json:"role"`
	Paused bool   `json:"paused"`
	Count  int    `json:"count"`
	// Until the next execution finished, and until all finished that were in flight.
	NextMedian *float64 `json:"next_median_seconds"`
	NextMax    *float64 `json:"next_max_seconds"`
	AllMedian  *float64 `json:"all_median_seconds"`
	AllMax     *float64 `json:"all_max_seconds"`
}

// account sums up a run: the executions, the effects and the recoveries.
func (r *Report) account(orders []*order, l *ledger, faults []*Fault) {
	duties := map[effect]duty{}
	var problems []string
	for _, o := range orders {
		for _, tool := range o.shape.effects {
			once := o.shape.once && tool == toolMail
			duties[effect{string(o.id), tool}] = duty{must: o.accepted && !slices.Contains(o.lost.effects, tool), once: once}
		}
		r.Executions.Submitted++
		switch {
		case o.ended.IsZero():
			r.Executions.Stuck++
			problems = append(problems, fmt.Sprintf("%s (%s) did not end", o.id, o.shape.name))
		case o.wrong != "":
			r.Executions.Wrong++
			problems = append(problems, fmt.Sprintf("%s (%s) %s", o.id, o.shape.name, o.wrong))
		case o.lost.limit:
			r.Executions.GivenUp++
		case o.lost.unknown:
			r.Executions.OutcomeUnknown++
		default:
			r.Executions.Right++
		}
	}
	effects, more := l.audit(duties)
	r.Effects = effects
	slices.Sort(more)
	problems = append(problems, more...)
	for _, name := range r.Ended {
		problems = append(problems, "ended by itself: "+name)
	}
	r.Faults, r.Recovery = faults, recoveries(faults)
	r.Held = r.Executions.Wrong == 0 && r.Executions.Stuck == 0 && r.Effects.OtherKey == 0 && r.Effects.Missing == 0 &&
		r.Effects.Unknown == 0 && r.Effects.RepeatedOnce == 0 && r.Effects.Unapproved == 0 && len(r.Ended) == 0 && r.Left.nothing()
	if over := len(problems) - maxProblems; over > 0 {
		problems = append(problems[:maxProblems:maxProblems], fmt.Sprintf("and %d more", over))
	}
	r.Problems = problems
}

// recoveries sums up faults by what was done to whom.
func recoveries(faults []*Fault) []Recovery {
	var all []Recovery
	for _, paused := range []bool{false, true} {
		for _, role := range []string{KillWorker, KillCoordinator, KillNATS, KillRedis} {
			sum := Recovery{Role: role, Paused: paused}
			var next, rest []time.Duration
			for _, f := range faults {
				if f.Role != role || f.Paused != paused {
					continue
				}
				sum.Count++
				if f.next > 0 {
					next = append(next, f.next)
				}
				if f.open == 0 {
					rest = append(rest, f.all)
				}
			}
			if sum.Count == 0 {
				continue
			}
			sum.NextMedian, sum.NextMax = medianAndMax(next)
			sum.AllMedian, sum.AllMax = medianAndMax(rest)
			all = append(all, sum)
		}
	}
	return all
}

func medianAndMax(times []time.Duration) (median, most *float64) {
	if len(times) == 0 {
		return nil, nil
	}
	slices.Sort(times)
	return seconds(times[(len(times)-1)/2]), seconds(times[len(times)-1])
}

// names of roles for people.
var names = map[string]string{KillWorker: "worker", KillCoordinator: "coordinator", KillNATS: "NATS", KillRedis: "Redis"}

// Print writes the report for people.
func (r *Report) Print(out io.Writer) {
	rows := func(title string, lines ...[3]string) {
		fmt.Fprintf(out, "\n%s\n", title)
		for _, l := range lines {
			fmt.Fprintf(out, "%s\n", strings.TrimRight(fmt.Sprintf("  %-39s %6s   %s", l[0], l[1], l[2]), " "))
		}
	}
	n := func(v int) string { return fmt.Sprint(v) }
	zero := func(v int) string {
		if v != 0 {
			return "must be 0: BROKEN"
		}
		return "must be 0"
	}
	x, e := r.Executions, r.Effects
	lines := [][3]string{
		{"submitted", n(x.Submitted), "each a model, three tools in parallel, and the model again"},
		{"finished with the right answer", n(x.Right)},
		{"finished, told \"outcome unknown\"", n(x.OutcomeUnknown), "a tool not to be repeated, whose worker was lost"},
	}
	if x.GivenUp > 0 {
		lines = append(lines, [3]string{"finished, told that a tool was given up", n(x.GivenUp), fmt.Sprintf("%d workers were lost with it, one after the other", deliveryLimit)})
	}
	rows("Executions", append(lines,
		[3]string{"finished with a wrong answer", n(x.Wrong), zero(x.Wrong)},
		[3]string{"stuck", n(x.Stuck), zero(x.Stuck)})...)
	lines = [][3]string{
		{"expected", n(e.Expected)},
		{"seen", n(e.Seen)},
		{"seen again, with the same key", n(e.RepeatedSameKey), "attempts repeated after a fault; who knows the key does it once"},
		{"seen again, with another key", n(e.OtherKey), zero(e.OtherKey)},
		{"seen again, though not to be repeated", n(e.RepeatedOnce), zero(e.RepeatedOnce)},
		{"missing", n(e.Missing), zero(e.Missing)},
		{"before the person had said yes", n(e.Unapproved), zero(e.Unapproved)},
		{"refused at first, and tried again", n(e.Refused), "a tool that fails now and then"},
	}
	if e.Unknown > 0 {
		lines = append(lines, [3]string{"seen though nobody had asked", n(e.Unknown), zero(e.Unknown)})
	}
	rows("Effects of tools", lines...)
	r.printRecovery(out)
	rows("Left in flight, after "+short(time.Duration(r.SettledSeconds*float64(time.Second))),
		[3]string{"jobs on the stream", n(r.Left.Jobs), zero(r.Left.Jobs)},
		[3]string{"open timers", n(r.Left.Timers), zero(r.Left.Timers)},
		[3]string{"unfinished executions", n(r.Left.Unfinished), zero(r.Left.Unfinished)})
	if len(r.Problems) > 0 {
		fmt.Fprint(out, "\nWhat went wrong\n")
		for _, p := range r.Problems {
			fmt.Fprintf(out, "  %s\n", p)
		}
	}
	fmt.Fprintln(out)
}

func (r *Report) printRecovery(out io.Writer) {
	if len(r.Recovery) == 0 {
		fmt.Fprint(out, "\nNothing was killed or paused.\n")
		return
	}
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "Kills and pauses\ttimes\tnext execution finished: median\tmax\tall in flight finished: median\tmax\t\n")
	at := func(s *float64) string {
		if s == nil {
			return "never"
		}
		return short(time.Duration(*s * float64(time.Second)))
	}
	for _, k := range r.Recovery {
		what := names[k.Role] + " killed"
		if k.Paused {
			what = names[k.Role] + " paused"
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\t\n", what, k.Count, at(k.NextMedian), at(k.NextMax), at(k.AllMedian), at(k.AllMax))
	}
	_ = table.Flush()
}
