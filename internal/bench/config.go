package bench

import (
	"fmt"
	"io"
	"time"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/loopback"
)

// Config says what is measured. The zero value of a field is its default.
type Config struct {
	// Scenario is what is measured, see Catalog; "agent" is the default.
	Scenario string
	// Executions to measure (0 is the scenario's default), or as many as begin within Duration.
	// Scenarios that have a size of another kind take these for each of their parts.
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
	// Think is how long the mock LLM thinks before every answer.
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
	// Program is the command line of the processes that scenarios start; it calls Child with the
	// argument that follows.
	Program []string
	// ProfileFile is the beginning of the names of the CPU profiles of a fleet's processes; "" takes none.
	ProfileFile string
	// WorkerCounts, CoordinatorCounts and Procs are the fleets of the scenario scale (default
	// 1, 2, 4 workers; 1, 2 coordinators; GOMAXPROCS 1, 2).
	WorkerCounts, CoordinatorCounts, Procs []int
	// ToolCounts are the numbers of tools of the scenario tools (default 5, 50, 500).
	ToolCounts []int
	// Backlog bounds the jobs that a coordinator holds back in the scenario burst; 0 is its
	// default.
	Backlog int
	// Retention of finished executions in the scenario finished (default 45 s).
	Retention time.Duration
	// Repeats of what is measured several times (default 3 executions of steps, 5 cold starts).
	Repeats int
	// idle is how long RunWaiting looks at what waiting costs; default 10 s.
	idle time.Duration
}

const (
	scenarioAgent = "agent"
	// The scenarios that have a report of their own.
	ScenarioScale    = "scale"
	ScenarioBurst    = "burst"
	ScenarioInflight = "inflight"
	ScenarioSteps    = "steps"
	ScenarioTools    = "tools"
	ScenarioLatency  = "latency"
	ScenarioFinished = "finished"
	ScenarioCold     = "cold"
	ScenarioWaiting  = "waiting"

	defaultExecutions = 2000

	// timeBudget is what scenarios of a default size take at most, about: on a machine that is too
	// slow they measure less.
	timeBudget = 150 * time.Second

	maxExecutions  = 1_000_000
	maxDuration    = 10 * time.Minute
	maxConcurrency = 4096
	maxProcesses   = 64
	maxTools       = 1000
	maxRepeats     = 100
)

// defaultRepeats of the scenarios that repeat.
var defaultRepeats = map[string]int{ScenarioSteps: 3, ScenarioCold: 5}

// withDefaults fills what was left open and refuses what cannot be measured.
func (c Config) withDefaults() (Config, error) {
	scenario, err := scenarioOf(c.Scenario)
	if err != nil {
		return c, err
	}
	c.Scenario = scenario.Name
	if c.Executions != 0 && c.Duration != 0 {
		return c, fmt.Errorf("executions and duration exclude each other")
	}
	if c.Duration == 0 && c.Executions == 0 {
		c.Executions = scenario.Executions
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
		{"repeats", &c.Repeats, defaultRepeats[c.Scenario], maxRepeats},
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
	case c.Retention < 0 || c.Retention > maxDuration:
		return c, fmt.Errorf("retention %s: use up to %s", c.Retention, maxDuration)
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
	for _, list := range []struct {
		name     string
		value    *[]int
		fallback []int
		max      int
	}{
		{"workers", &c.WorkerCounts, []int{1, 2, 4}, maxProcesses},
		{"coordinators", &c.CoordinatorCounts, []int{1, 2}, maxProcesses},
		{"gomaxprocs", &c.Procs, []int{1, 2}, maxProcesses},
		{"tools", &c.ToolCounts, []int{5, 50, 500}, maxTools},
	} {
		if *list.value == nil {
			*list.value = list.fallback
		}
		for _, n := range *list.value {
			if n < 1 || n > list.max {
				return c, fmt.Errorf("%s %d: use 1 to %d", list.name, n, list.max)
			}
		}
	}
	if c.Progress == nil {
		c.Progress = func(string, int, int) {}
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	if c.Retention == 0 {
		c.Retention = 45 * time.Second
	}
	if c.idle == 0 {
		c.idle = 10 * time.Second
	}
	return c, nil
}
