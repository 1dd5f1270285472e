package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// maxDown is how long a killed process may stay away before it is started again.
	maxDown = 2 * time.Second
	// beyondLease is how much longer than its lease a worker is paused.
	beyondLease = 3 * time.Second
	// coordinatorPause is longer than others wait for an answer of a coordinator.
	coordinatorPause = 12 * time.Second
	// serverPause of NATS or Redis, which everybody waits for.
	serverPause = 4 * time.Second
)

// Fault is one process that was killed or paused, and how the rest got over it.
type Fault struct {
	Second float64 `json:"second"` // since the load began
	Role   string  `json:"role"`
	Paused bool    `json:"paused"`
	Name   string  `json:"name"`
	PID    int     `json:"pid"`
	// ForSeconds is how long it was paused, or how long after its end it was started again.
	ForSeconds float64 `json:"for_seconds"`
	// InFlight is how many executions were begun and not over.
	InFlight int `json:"in_flight"`

	at   time.Time
	next time.Duration // until an execution ended; 0 is not yet
	all  time.Duration // until all that were in flight had ended
	open int           // of those, not over yet
}

// MarshalJSON adds how long the recovery took; null is that there was none.
func (f *Fault) MarshalJSON() ([]byte, error) {
	type plain Fault
	out := struct {
		*plain
		Next *float64 `json:"next_execution_finished_seconds"`
		All  *float64 `json:"all_in_flight_finished_seconds"`
	}{plain: (*plain)(f)}
	if f.next > 0 {
		out.Next = seconds(f.next)
	}
	if f.open == 0 {
		out.All = seconds(f.all)
	}
	return json.Marshal(out)
}

func seconds(d time.Duration) *float64 {
	s := d.Round(time.Millisecond).Seconds()
	return &s
}

// what says what was done to the process.
func (f *Fault) what() string {
	if f.Paused {
		return "paused for " + short(time.Duration(f.ForSeconds*float64(time.Second)))
	}
	return "killed"
}

// line tells the fault to people.
func (f *Fault) line() string {
	next := "no execution has finished since"
	if f.next > 0 {
		next = "next execution finished after " + short(f.next)
	}
	return fmt.Sprintf("%5.1fs  %s (process %d) %s, %d in flight: %s", f.Second, f.Name, f.PID, f.what(), f.InFlight, next)
}

// blow is a fault that is planned.
type blow struct {
	after time.Duration // the one before
	role  string
	pause bool
	pick  int // chooses among the processes of the role
	down  time.Duration
}

// planner plans faults: the same seed, the same plan.
type planner struct {
	random *rand.Rand
	kinds  []string
	round  []string // kinds that are still to come before any comes again
	every  time.Duration
}

func newPlanner(seed uint64, kinds []string, every time.Duration) *planner {
	sorted := slices.Clone(kinds)
	slices.Sort(sorted)
	return &planner{random: rand.New(rand.NewPCG(seed, 0)), kinds: slices.Compact(sorted), every: every}
}

// roles that may be paused: those that may be killed, or everybody's when nothing is.
func (p *planner) roles() []string {
	roles := slices.DeleteFunc(slices.Clone(p.kinds), func(k string) bool { return k == Pause })
	if len(roles) == 0 {
		roles = []string{KillCoordinator, KillNATS, KillRedis, KillWorker}
	}
	return roles
}

// next plans a fault. Every kind comes once before one comes again: a short run shall
// see them all.
func (p *planner) next() blow {
	if len(p.round) == 0 {
		p.round = slices.Clone(p.kinds)
		p.random.Shuffle(len(p.round), func(i, j int) { p.round[i], p.round[j] = p.round[j], p.round[i] })
	}
	kind := p.round[0]
	p.round = p.round[1:]
	roles := p.roles()
	paused := roles[p.random.IntN(len(roles))]
	b := blow{
		after: time.Duration((0.7 + 0.6*p.random.Float64()) * float64(p.every)),
		role:  kind, pick: p.random.IntN(1 << 16),
		down: time.Duration(p.random.Float64() * float64(min(maxDown, p.every))).Round(time.Millisecond),
	}
	if kind == Pause {
		b.role, b.pause = paused, true
	}
	return b
}

// pauseOf is how long a process of a role is paused.
func pauseOf(role string, lease time.Duration) time.Duration {
	switch role {
	case KillWorker:
		return lease + beyondLease
	case KillCoordinator:
		return coordinatorPause
	}
	return serverPause
}

// breaker breaks the fleet as planned.
type breaker struct {
	config Config
	fleet  *fleet
	load   *load
	began  time.Time

	mu     sync.Mutex
	faults []*Fault
	paused bool // one at a time: a fleet of sleepers proves nothing
	group  sync.WaitGroup
}

// run breaks until ctx ends.
func (b *breaker) run(ctx context.Context) {
	plan := newPlanner(b.config.Seed, b.config.Kill, b.config.Every)
	for {
		next := plan.next()
		pause(ctx, next.after)
		if ctx.Err() != nil {
			break
		}
		b.strike(ctx, next)
	}
	b.group.Wait()
}

// strike does what is planned, as far as it can be done now: a pause that would last
// beyond the end, or beside another one, becomes a kill.
func (b *breaker) strike(ctx context.Context, next blow) {
	units := b.fleet.of(next.role)
	if len(units) == 0 {
		return // all of them are away already
	}
	u := units[next.pick%len(units)]
	f := &Fault{Role: next.role, Name: u.name, at: time.Now()}
	f.Second = f.at.Sub(b.began).Seconds()
	if length := pauseOf(next.role, b.config.Lease); next.pause && b.mayPause(length) {
		if f.PID = u.stop(); f.PID == 0 {
			b.endPause()
			return
		}
		f.Paused, f.ForSeconds = true, length.Seconds()
		b.note(f)
		b.group.Go(func() {
			pause(ctx, length)
			u.resume()
			b.endPause()
		})
		return
	}
	if next.pause && !slices.Contains(b.config.Kill, next.role) {
		return
	}
	if f.PID = u.kill(next.down); f.PID != 0 {
		f.ForSeconds = next.down.Seconds()
		b.note(f)
	}
}

func (b *breaker) note(f *Fault) {
	b.load.struck(f)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, f)
}

func (b *breaker) mayPause(length time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.paused || time.Since(b.began)+length > b.config.Duration {
		return false
	}
	b.paused = true
	return true
}

func (b *breaker) endPause() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paused = false
}

func (b *breaker) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.faults)
}

// short is a duration for people.
func short(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return strings.TrimSuffix(fmt.Sprintf("%.2f", d.Seconds()), "0") + "s"
	default:
		return fmt.Sprintf("%.0fs", d.Seconds())
	}
}
