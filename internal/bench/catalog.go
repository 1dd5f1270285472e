package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Result is the report of a scenario. Encoded as JSON, its field names stay what they are.
type Result interface {
	// Print writes it for people.
	Print(out io.Writer)
	// Tables are its figures.
	Tables() []Table
	environment() *Environment
}

// Scenario is something to measure.
type Scenario struct {
	Name  string
	About string // one line
	Takes string // how long about, at its default size
	// Executions is its default size, 0 where Config.Executions does not say it.
	Executions int

	empty func() Result
	run   func(context.Context, *Config) (Result, error)
}

// catalog lists the scenarios in the order in which people read them.
func catalog() []Scenario {
	return []Scenario{
		{scenarioAgent, "agent executions per second, next to the floor of the same servers", "20 s", defaultExecutions, func() Result { return &Report{} }, runAgent},
		{ScenarioScale, "the same with more workers, more coordinators and more cores", "1.5 min", 0, func() Result { return &ScaleReport{} }, runScale},
		{ScenarioBurst, "many submissions at once: refusals, time until all are done, nothing lost", "30 s", 10_000, func() Result { return &BurstReport{} }, runBurst},
		{ScenarioInflight, "many executions whose model thinks: memory of each, and how fast they end", "2.5 min", 50_000, func() Result { return &InflightReport{} }, runInflight},
		{ScenarioSteps, "a step of one long execution after 10, 1,000 and 10,000 others", "1 min", 10_000, func() Result { return &StepsReport{} }, runSteps},
		{ScenarioTools, "5, 50 and 500 parallel tools of one turn", "30 s", 0, func() Result { return &ToolsReport{} }, runTools},
		{ScenarioLatency, "how long an execution takes at half of what is possible", "40 s", 0, func() Result { return &LatencyReport{} }, runLatency},
		{ScenarioFinished, "what finished executions cost, and what is left of them after their retention", "1.5 min", 5000, func() Result { return &FinishedReport{} }, runFinished},
		{ScenarioCold, "from the start of a coordinator and a worker to the first result", "15 s", 0, func() Result { return &ColdReport{} }, runCold},
		{ScenarioWaiting, "executions that wait for a person: memory of each, and what others notice", "2.5 min", DefaultWaiting, func() Result { return &WaitingReport{} }, runWaitingResult},
	}
}

// Catalog lists what can be measured.
func Catalog() []Scenario { return catalog() }

// Scenarios are the names of what can be measured.
func Scenarios() []string {
	var names []string
	for _, s := range catalog() {
		names = append(names, s.Name)
	}
	return names
}

func scenarioOf(name string) (Scenario, error) {
	if name == "" {
		name = scenarioAgent
	}
	all := catalog()
	i := slices.IndexFunc(all, func(s Scenario) bool { return s.Name == name })
	if i < 0 {
		return Scenario{}, fmt.Errorf("scenario %q is not known: use %s", name, strings.Join(Scenarios(), ", "))
	}
	return all[i], nil
}

// Measure runs a scenario. Its error is ErrFailed with that of the first execution that failed, ctx's,
// or why servers could not be used.
func Measure(ctx context.Context, c Config) (Result, error) {
	s, err := scenarioOf(c.Scenario)
	if err != nil {
		return nil, err
	}
	c.Scenario = s.Name
	if c.Executions == 0 && c.Duration == 0 {
		c.Executions = s.Executions
	}
	if c, err = c.withDefaults(); err != nil {
		return nil, err
	}
	if s.Name != scenarioAgent && c.External {
		return nil, fmt.Errorf("the scenario %s starts coordinators and workers: leave --external out", s.Name)
	}
	var e Environment
	e.begin()
	r, err := s.run(ctx, &c)
	if err != nil {
		return nil, err
	}
	e.end()
	servers := r.environment()
	e.Redis, e.RedisVersion, e.NATSVersion = servers.Redis, servers.RedisVersion, servers.NATSVersion
	*servers = e
	return r, nil
}

func runAgent(ctx context.Context, c *Config) (Result, error) { return result(Run(ctx, *c)) }
func runWaitingResult(ctx context.Context, c *Config) (Result, error) {
	return result(RunWaiting(ctx, *c))
}

// result keeps a nil report from becoming a Result that is not nil.
func result[R Result](r R, err error) (Result, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}
