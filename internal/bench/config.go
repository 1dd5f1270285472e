package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/loopback"
)

// Config says what is measured. The zero value of a field is its default.
type Config struct {
	// Scenario is what an execution does: "agent", the default, for Run; "waiting" for
	// RunWaiting.
	Scenario string
	// Executions to measure (default 2000), or as many as begin within Duration.
	Executions int
	Duration   time.Duration
	// Concurrency is the number of executions in flight (default 64).
	Concurrency int
	// Coordinators and Workers to start in this process (default 1 each).
	Coordinators, Workers int
	// WorkerConcurrency is the number of jobs a worker runs at once (default 128).
	WorkerConcurrency int
	// ModelOverHTTP has the mock model answer over HTTP, as real ones do. Otherwise it answers
	// in memory, at no cost, as the floor has no model either.
	ModelOverHTTP bool
	// Think is how long the mock LLM thinks before each of an execution's two answers.
	Think time.Duration
	// NATSURL and RedisURL of servers on this machine; empty starts embedded ones.
	NATSURL, RedisURL string
	// External only submits: coordinators and workers run elsewhere, on NATSURL.
	External bool
	// NoFloor leaves the floor out.
	NoFloor bool
	// CPUProfile gets a profile of the measured executions; nil takes none.
	CPUProfile io.Writer
	// Progress is called a few times a second; nil is not.
	Progress func(stage string, done, of int)
	Log      *zap.Logger
	// idle is how long RunWaiting looks at what waiting costs; default 10 s.
	idle time.Duration
}

const (
	scenarioAgent = "agent"
	// ScenarioWaiting is the one of RunWaiting.
	ScenarioWaiting = "waiting"

	maxExecutions  = 1_000_000
	maxDuration    = 10 * time.Minute
	maxConcurrency = 4096
	maxProcesses   = 64
)

// Scenarios that can be measured.
func Scenarios() []string { return []string{scenarioAgent, ScenarioWaiting} }

// withDefaults fills what was left open and refuses what cannot be measured.
func (c Config) withDefaults() (Config, error) {
	if c.Scenario == "" {
		c.Scenario = scenarioAgent
	}
	if !slices.Contains(Scenarios(), c.Scenario) {
		return c, fmt.Errorf("scenario %q is not known: use %s", c.Scenario, strings.Join(Scenarios(), ", "))
	}
	if c.Executions != 0 && c.Duration != 0 {
		return c, fmt.Errorf("executions and duration exclude each other")
	}
	if c.Duration == 0 && c.Executions == 0 {
		c.Executions = 2000
	}
	for _, n := range []struct {
		name          string
		value         *int
		fallback, max int
	}{
		{"concurrency", &c.Concurrency, 64, maxConcurrency},
		{"coordinators", &c.Coordinators, 1, maxProcesses},
		{"workers", &c.Workers, 1, maxProcesses},
		{"worker concurrency", &c.WorkerConcurrency, 128, maxConcurrency},
	} {
		if *n.value == 0 {
			*n.value = n.fallback
		}
		if *n.value < 0 || *n.value > n.max {
			return c, fmt.Errorf("%s %d: use 1 to %d", n.name, *n.value, n.max)
		}
	}
	switch {
	case c.Executions < 0 || c.Executions > maxExecutions:
		return c, fmt.Errorf("executions %d: use 1 to %d", c.Executions, maxExecutions)
	case c.Duration < 0 || c.Duration > maxDuration:
		return c, fmt.Errorf("duration %s: use up to %s", c.Duration, maxDuration)
	case c.Think < 0:
		return c, fmt.Errorf("think time %s is negative", c.Think)
	case c.External && c.NATSURL == "":
		return c, fmt.Errorf("external coordinators need the url of their NATS server")
	}
	for name, list := range map[string]string{"NATS": c.NATSURL, "Redis": c.RedisURL} {
		if err := loopback.Check(name, list); err != nil {
			return c, err
		}
	}
	if c.Progress == nil {
		c.Progress = func(string, int, int) {}
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	if c.idle == 0 {
		c.idle = 10 * time.Second
	}
	return c, nil
}
