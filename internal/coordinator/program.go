package coordinator

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/reprise-engine/reprise/internal/runner"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// program is a workflow made ready to run: its state machine, and for every
// node what a job of it carries. It is immutable.
type program struct {
	workflow *workflow.Workflow
	machine  *engine.Machine
	nodes    map[string]*nodeProgram
	pools    []string      // that its nodes run in
	rate     workflow.Rate // of new executions
}

// nodeProgram is what is known of a node's jobs before there is one.
type nodeProgram struct {
	node       *workflow.Node
	plan       *runner.Plan
	raw        json.RawMessage // the plan as JSON
	hash       string
	inline     bool // run by the coordinator itself
	history    bool
	references expression.References
	pool       string
	waits      bool // it may ask a person, and is told the URL of that
	resumeURL  bool // it can use the URL that resumes it
	customData bool // it can read $execution.customData
	trigger    bool
	rate       workflow.Rate // of its jobs
	once       bool          // a run is given up, not repeated, when its worker vanishes
}

// compile prepares a workflow.
func compile(w *workflow.Workflow, registry *node.Registry, limits engine.Limits) (*program, error) {
	p := &program{workflow: w, machine: engine.NewLimited(w, registry, limits), nodes: make(map[string]*nodeProgram, len(w.Nodes))}
	var err error
	if p.rate, err = workflow.ParseRate(w.Settings.RateLimit); err != nil {
		return nil, fmt.Errorf("settings.rateLimit: %w", err)
	}
	for _, n := range w.Nodes {
		compiled, err := compileNode(w, n, registry)
		if err != nil {
			return nil, fmt.Errorf("prepare node %q: %w", n.Name, err)
		}
		p.nodes[n.Name] = compiled
		if !slices.Contains(p.pools, compiled.pool) {
			p.pools = append(p.pools, compiled.pool)
		}
	}
	return p, nil
}

// trigger reports whether a node is one that executions begin with: then its
// output is what it was given.
func (p *program) trigger(n *workflow.Node) bool {
	compiled := p.nodes[n.Name]
	return compiled != nil && compiled.trigger && !n.Disabled
}

// priority of an execution whose submission asks for one, or "" for the workflow's own.
func (p *program) priority(asked string) string {
	if asked == "" {
		asked = p.workflow.Settings.Priority
	}
	if asked == workflow.PriorityNormal {
		return ""
	}
	return asked
}

// attachedTypes are the connections along which a node uses other nodes
// without the engine's help.
var attachedTypes = []string{workflow.LanguageModel, workflow.Memory, workflow.Tool, workflow.OutputParser}

func compileNode(w *workflow.Workflow, n *workflow.Node, registry *node.Registry) (*nodeProgram, error) {
	plan := queue.Plan{
		WorkflowID: w.ID, WorkflowName: w.Name, Timezone: w.Settings.Timezone, Node: n.Name,
	}
	included := map[string]bool{n.Name: true}
	plan.Nodes = append(plan.Nodes, n)
	for i := 0; i < len(plan.Nodes); i++ { // grows while sub-nodes are found
		user := plan.Nodes[i]
		for _, connType := range attachedTypes {
			for _, sub := range w.SubNodes(user.Name, connType) {
				if plan.SubNodes == nil {
					plan.SubNodes = map[string]map[string][]string{}
				}
				if plan.SubNodes[user.Name] == nil {
					plan.SubNodes[user.Name] = map[string][]string{}
				}
				plan.SubNodes[user.Name][connType] = append(plan.SubNodes[user.Name][connType], sub.Name)
				if !included[sub.Name] {
					included[sub.Name] = true
					plan.Nodes = append(plan.Nodes, sub)
				}
			}
		}
	}
	own := len(plan.Nodes)
	compiled := &nodeProgram{node: n, pool: n.Pool}
	simple, readsParameters := true, false
	for _, used := range plan.Nodes {
		compiled.references = union(compiled.references, expression.FindReferences(used.Parameters, true))
		simple = simple && expression.Simple(used.Parameters)
		readsParameters = readsParameters || bytes.Contains(used.Parameters, []byte("param"))
		compiled.resumeURL = compiled.resumeURL || mentionsResumeURL(used.Parameters)
		compiled.customData = compiled.customData || bytes.Contains(used.Parameters, []byte("customData"))
	}
	referred := compiled.references.Nodes
	if compiled.references.All {
		referred = referred[:0:0]
		for _, other := range w.Nodes {
			referred = append(referred, other.Name)
		}
	}
	for _, name := range referred {
		other := w.Node(name)
		if other == nil || included[name] {
			continue
		}
		included[name] = true
		brief := *other
		if !readsParameters { // then only its existence matters
			brief.Parameters = json.RawMessage("{}")
		}
		plan.Nodes = append(plan.Nodes, &brief)
	}
	if typ, ok := registry.Find(n.Type, n.TypeVersion); ok {
		compiled.inline = typ.Inline && simple && own == 1 && n.Pool == "" && (typ.Apart == nil || !typ.Apart(n))
		compiled.history = typ.History
		compiled.waits, compiled.trigger = typ.Waits, typ.Trigger
		compiled.once = once(w, n, typ)
		compiled.resumeURL = compiled.resumeURL || typ.Waits
	}
	var err error
	if compiled.rate, err = workflow.ParseRate(n.RateLimit); err != nil {
		return nil, fmt.Errorf("rateLimit: %w", err)
	}
	// What has a limit is a job, which can wait.
	compiled.inline = compiled.inline && compiled.rate.Count == 0 && w.Settings.RateLimit == ""
	if compiled.raw, err = json.Marshal(plan); err != nil {
		return nil, fmt.Errorf("encode plan: %w", err)
	}
	sum := sha256.Sum256(compiled.raw)
	compiled.hash = hex.EncodeToString(sum[:16])
	compiled.plan, err = runner.NewPlan(plan)
	return compiled, err
}

// once reports whether a run of a node is given up when its worker vanishes, as
// its node, the workflow, or else its type says.
func once(w *workflow.Workflow, n *workflow.Node, typ *node.Type) bool {
	said := n.OnWorkerLost
	if said == "" {
		said = w.Settings.OnWorkerLost
	}
	if said != "" {
		return said == workflow.WorkerLostGiveUp
	}
	return typ.Once != nil && typ.Once(n)
}

// mentionsResumeURL reports whether an expression or code in the parameters can
// read the URL that resumes the execution.
func mentionsResumeURL(parameters json.RawMessage) bool {
	for _, name := range []string{"resumeUrl", "resumeFormUrl", "$execution"} {
		if bytes.Contains(parameters, []byte(name)) {
			return true
		}
	}
	return false
}

func union(a, b expression.References) expression.References {
	for _, name := range b.Nodes {
		if !slices.Contains(a.Nodes, name) {
			a.Nodes = append(a.Nodes, name)
		}
	}
	a.Lineage = a.Lineage || b.Lineage
	a.AllRuns = a.AllRuns || b.AllRuns
	a.All = a.All || b.All
	return a
}

// programCache keeps compiled workflows by hash. When it is full it starts
// over, which only costs compiling them again.
type programCache struct {
	mu       sync.Mutex
	programs map[string]*program
}

const maxPrograms = 1024

func (c *programCache) get(hash string) *program {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.programs[hash]
}

func (c *programCache) put(hash string, p *program) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.programs == nil || len(c.programs) >= maxPrograms {
		c.programs = make(map[string]*program)
	}
	c.programs[hash] = p
}
