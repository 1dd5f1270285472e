package chaos

import (
	"errors"
	"fmt"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/reprise-engine/reprise/internal/loopback"
	"github.com/reprise-engine/reprise/internal/service"
)

// The kinds of faults: SIGKILL for a process of one role, or SIGSTOP and later
// SIGCONT for one of any.
const (
	KillWorker      = "worker"
	KillCoordinator = "coordinator"
	KillNATS        = "nats"
	KillRedis       = "redis"
	Pause           = "pause"
)

// Kinds are all kinds of faults.
func Kinds() []string { return []string{KillWorker, KillCoordinator, KillNATS, KillRedis, Pause} }

const (
	maxDuration  = 10 * time.Minute
	maxProcesses = 16
	maxRate      = 200
	minEvery     = 200 * time.Millisecond
)

// DefaultLease is the workers' own default.
func DefaultLease() time.Duration {
	field, _ := reflect.TypeFor[service.Worker]().FieldByName("Lease")
	lease, err := time.ParseDuration(field.Tag.Get("envDefault"))
	if err != nil {
		panic(fmt.Sprintf("the default lease of workers: %v", err)) // a constant of ours
	}
	return lease
}

// Config of a run. Program is needed, all else has defaults.
type Config struct {
	// Program and its arguments run Child when the name of a role is appended.
	Program []string
	// Duration of the load (default 60 s, at most 10 minutes).
	Duration time.Duration
	// Coordinators (default 2) and Workers (default 3) to start.
	Coordinators, Workers int
	// Rate is executions per second (default 10).
	Rate float64
	// Every is the mean time between two faults (default 4 s).
	Every time.Duration
	// Seed determines the faults; 0 is a random one, which the report tells.
	Seed uint64
	// Kill are the kinds of faults; nil is all that are possible.
	Kill []string
	// Lease is how long a job may be without a sign of life (default the workers' own).
	Lease time.Duration
	// Settle is how long everything may take to come to rest when the load is over
	// (default 60 s).
	Settle time.Duration
	// NATSURL and RedisURL of servers on this machine, both or none. They are not
	// killed, and finished executions stay in them.
	NATSURL, RedisURL string
	// LogDir gets a log file per process; "" keeps none.
	LogDir string
	// Say is called with each line of the story, Progress a few times a second; nil is not.
	Say      func(line string)
	Progress func(Progress)
}

// Progress is how far a run is.
type Progress struct {
	Stage                       string
	Elapsed, Of                 time.Duration
	Submitted, Finished, Faults int
}

// given says whether the servers are someone else's.
func (c *Config) given() bool { return c.NATSURL != "" }

// withDefaults fills what was left open and refuses what cannot be done.
func (c Config) withDefaults() (Config, error) {
	if len(c.Program) == 0 {
		return c, errors.New("chaos: Config.Program is empty")
	}
	for _, d := range []struct {
		name               string
		value              *time.Duration
		fallback, min, max time.Duration
	}{
		{"duration", &c.Duration, 60 * time.Second, time.Second, maxDuration},
		{"every", &c.Every, 4 * time.Second, minEvery, maxDuration},
		{"lease", &c.Lease, DefaultLease(), time.Second, maxDuration},
		{"settle", &c.Settle, 60 * time.Second, time.Second, maxDuration},
	} {
		if *d.value == 0 {
			*d.value = d.fallback
		}
		if *d.value < d.min || *d.value > d.max {
			return c, fmt.Errorf("%s %s: use %s to %s", d.name, *d.value, d.min, d.max)
		}
	}
	for _, n := range []struct {
		name     string
		value    *int
		fallback int
	}{{"coordinators", &c.Coordinators, 2}, {"workers", &c.Workers, 3}} {
		if *n.value == 0 {
			*n.value = n.fallback
		}
		if *n.value < 1 || *n.value > maxProcesses {
			return c, fmt.Errorf("%s %d: use 1 to %d", n.name, *n.value, maxProcesses)
		}
	}
	if c.Rate == 0 {
		c.Rate = 10
	}
	if !(c.Rate >= 0.1 && c.Rate <= maxRate) {
		return c, fmt.Errorf("rate %g: use 0.1 to %d executions a second", c.Rate, maxRate)
	}
	if (c.NATSURL == "") != (c.RedisURL == "") {
		return c, errors.New("give the urls of both NATS and Redis, or of neither")
	}
	for name, list := range map[string]string{"NATS": c.NATSURL, "Redis": c.RedisURL} {
		if err := loopback.Check(name, list); err != nil {
			return c, err
		}
	}
	if c.Say == nil {
		c.Say = func(string) {}
	}
	if c.Progress == nil {
		c.Progress = func(Progress) {}
	}
	return c.withKinds()
}

// withKinds decides what can be killed.
func (c Config) withKinds() (Config, error) {
	asked := c.Kill != nil
	if !asked {
		c.Kill = Kinds()
	}
	for _, kind := range c.Kill {
		if !slices.Contains(Kinds(), kind) {
			return c, fmt.Errorf("kill %q: use %s", kind, strings.Join(Kinds(), ", "))
		}
	}
	if len(c.Kill) == 0 {
		return c, fmt.Errorf("kill nothing: use some of %s", strings.Join(Kinds(), ", "))
	}
	without := func(kind, why string) error {
		if !slices.Contains(c.Kill, kind) {
			return nil
		}
		if asked {
			return fmt.Errorf("kill %q: %s", kind, why)
		}
		c.Kill = slices.DeleteFunc(slices.Clone(c.Kill), func(k string) bool { return k == kind })
		return nil
	}
	if c.given() {
		for _, kind := range []string{KillNATS, KillRedis} {
			if err := without(kind, "only what was started here is killed, and this server was given"); err != nil {
				return c, err
			}
		}
	} else if _, err := exec.LookPath("redis-server"); err != nil {
		why := "there is no redis-server on PATH to be killed; install it"
		if err := without(KillRedis, why); err != nil {
			return c, err
		}
		c.Say("Redis is not killed: there is no redis-server on PATH. A miniredis inside this process stands in for it.")
	}
	if !canPause {
		if err := without(Pause, "processes cannot be stopped for a while on this system"); err != nil {
			return c, err
		}
	}
	return c, nil
}
