package workflow

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // whether a time zone is valid must not depend on the machine
)

// Validate returns everything that is wrong with a workflow at once, that of
// the workflow first, then node by node in file order. Disabled nodes and
// sticky notes are not looked at.
func Validate(w *Workflow, c Catalog) Problems { return ValidateStart(w, c, "") }

// ValidateStart is Validate for an execution that starts at the named node, so
// that the workflow needs no trigger.
func ValidateStart(w *Workflow, c Catalog, start string) Problems {
	v := &validator{w: w, c: c}
	v.settings()
	v.limits()
	v.start(start)
	v.names()
	v.reachable = w.reachable(c, start)
	parsed := map[string]Problems{}
	known := map[string]bool{"": true}
	for _, p := range w.problems {
		parsed[p.Node] = append(parsed[p.Node], p)
	}
	v.problems = append(v.problems, parsed[""]...)
	for _, n := range w.Nodes {
		// Parse's remarks carry the name alone and would come twice for two
		// nodes of one name.
		if !known[n.Name] && !n.Disabled {
			v.problems = append(v.problems, parsed[n.Name]...)
		}
		known[n.Name] = true
		if !n.Disabled {
			v.node(n)
		}
	}
	// Connections and pinned data of names that are no nodes.
	for _, p := range w.problems {
		if !known[p.Node] {
			v.problems = append(v.problems, p)
		}
	}
	return v.problems
}

type validator struct {
	w         *Workflow
	c         Catalog
	reachable map[string]bool
	problems  Problems
}

func (v *validator) report(s Severity, node, field, format string, args ...any) {
	v.problems = append(v.problems, Problem{s, node, field, fmt.Sprintf(format, args...)})
}

// maxConcurrency is the greatest settings.maxConcurrency; more is as good as no limit.
const maxConcurrency = 1_000_000

func (v *validator) settings() {
	s := v.w.Settings
	switch s.ExecutionOrder {
	case "", "v0", "v1":
	default:
		v.report(SeverityWarning, "", "settings.executionOrder", "%q is neither v0 nor v1; it runs as v0, as in n8n", s.ExecutionOrder)
	}
	switch s.ToolExecution {
	case "", "parallel", "sequential":
	default:
		v.report(SeverityError, "", "settings.toolExecution", "%q is neither parallel nor sequential", s.ToolExecution)
	}
	if !s.OnWorkerLost.known() {
		v.report(SeverityError, "", "settings.onWorkerLost", "%q is neither %s nor %s", s.OnWorkerLost, WorkerLostRepeat, WorkerLostGiveUp)
	}
	if n := s.MaxConcurrency; n < 0 || n != math.Trunc(n) || n > maxConcurrency {
		v.report(SeverityError, "", "settings.maxConcurrency", "%v is not a number of executions from 1 to %d, or 0 for the coordinators' limit", n, maxConcurrency)
	}
	if s.Timezone != "" {
		if _, err := time.LoadLocation(s.Timezone); err != nil {
			v.report(SeverityError, "", "settings.timezone", "%q is no time zone; want a name such as Europe/Berlin", s.Timezone)
		}
	}
}

func (v *validator) start(start string) {
	if start == "" {
		if _, err := v.w.Start(v.c); err != nil {
			v.report(SeverityError, "", "", "%v: add a trigger, enable one, or name the node to start from", err)
		}
		return
	}
	if v.w.Node(start) == nil {
		v.report(SeverityError, "", "", "there is no node %q to start from", start)
	}
}

// names reports missing and repeated names: connections, expressions and run
// data all go by name. Disabled nodes count, they have a place in the graph.
func (v *validator) names() {
	count := map[string]int{}
	for _, n := range v.w.Nodes {
		count[n.Name]++
	}
	for i, n := range v.w.Nodes {
		switch {
		case n.Name == "":
			v.report(SeverityError, "", fmt.Sprintf("nodes[%d].name", i), "is missing (type %q)", n.Type)
		case count[n.Name] > 1:
			v.report(SeverityError, n.Name, "name", "%d nodes have this name; rename all but one", count[n.Name])
			count[n.Name] = 0
		}
	}
}

func (v *validator) node(n *Node) {
	v.values(n)
	v.nodeLimits(n)
	spec := v.nodeType(n)
	if spec == nil {
		return
	}
	v.subNodes(n, spec)
	v.use(n, spec)
}

func (v *validator) values(n *Node) {
	switch n.OnError {
	case OnErrorUnset, OnErrorStop, OnErrorContinue, OnErrorOutput:
	default:
		v.report(SeverityError, n.Name, "onError", "%q is none of %s, %s, %s", n.OnError, OnErrorStop, OnErrorContinue, OnErrorOutput)
	}
	if !n.OnWorkerLost.known() {
		v.report(SeverityError, n.Name, "onWorkerLost", "%q is neither %s nor %s", n.OnWorkerLost, WorkerLostRepeat, WorkerLostGiveUp)
	}
	if n.Timeout < 0 {
		v.report(SeverityError, n.Name, "timeout", "is %d; want milliseconds, or 0 for none", n.Timeout)
	}
	if n.WaitBetweenTries < 0 {
		v.report(SeverityError, n.Name, "waitBetweenTries", "is %d; want milliseconds", n.WaitBetweenTries)
	}
	if !poolName(n.Pool) {
		v.report(SeverityError, n.Name, "pool", "%q may hold only letters, digits, - and _", n.Pool)
	}
}

// poolName reports whether a pool can be part of a NATS subject.
func poolName(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}

// nodeType returns the spec of a node's type, nil when it is unknown.
func (v *validator) nodeType(n *Node) *Spec {
	spec, ok := v.c.Lookup(n.Type, n.TypeVersion)
	switch {
	case n.Type == "":
		v.report(SeverityError, n.Name, "type", "is missing")
		return nil
	case spec == nil:
		if _, pinned := v.w.PinData[n.Name]; pinned {
			v.report(SeverityWarning, n.Name, "type", "%q is not known here; only its pinned data can be used", n.Type)
		} else {
			v.report(SeverityError, n.Name, "type", "%q is not known here; disable the node, replace it or pin its data", n.Type)
		}
		return nil
	case !ok:
		v.report(SeverityError, n.Name, "typeVersion", "%s is not among the known versions of %s: %s", version(n.TypeVersion), n.Type, versions(spec.Versions))
	}
	return spec
}

func version(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

func versions(known []float64) string {
	sorted := slices.Clone(known)
	slices.Sort(sorted)
	texts := make([]string, len(sorted))
	for i, f := range sorted {
		texts[i] = version(f)
	}
	return strings.Join(texts, ", ")
}

// subNodes checks what is attached to a node.
func (v *validator) subNodes(n *Node, spec *Spec) {
	if _, pinned := v.w.PinData[n.Name]; !pinned {
		for _, connType := range sortedKeys(spec.SubNodes) {
			if len(v.w.SubNodes(n.Name, connType)) == 0 {
				v.report(v.severity(n), n.Name, connType, "a %s must be connected and enabled", spec.SubNodes[connType])
			}
		}
	}
	// A type that names what it needs but not what it accepts may accept more.
	if len(spec.SubNodes) > 0 && spec.Accepts == nil {
		return
	}
	for _, connType := range sortedKeys(v.w.in[n.Name]) {
		attached := v.w.SubNodes(n.Name, connType)
		if connType == Main || len(attached) == 0 || spec.SubNodes[connType] != "" || slices.Contains(spec.Accepts, connType) {
			continue
		}
		severity, what := SeverityWarning, connType
		if connType == Tool {
			severity, what = v.severity(n), "tools"
		}
		for _, sub := range attached {
			v.report(severity, sub.Name, "connections."+connType, "is attached to %q (%s), which takes no %s", n.Name, n.Type, what)
		}
	}
}

// use checks what a node is attached to.
func (v *validator) use(n *Node, spec *Spec) {
	out := v.w.out[n.Name]
	switch {
	case len(out[Tool]) > 0 && !spec.ToolNode:
		v.report(v.severity(n), n.Name, "connections."+Tool, "%s cannot be used as a tool", n.Type)
	case spec.SubNode && len(out) == 0:
		v.report(SeverityWarning, n.Name, "connections", "is connected to nothing and never used")
	case spec.ToolNode && len(out) == 0 && len(v.w.in[n.Name][Main]) == 0:
		v.report(SeverityWarning, n.Name, "connections", "is a tool that is connected to nothing")
	}
}

// severity is an error where an execution can get, else a warning: people
// leave half-built nodes beside the flow.
func (v *validator) severity(n *Node) Severity {
	if v.reachable[n.Name] {
		return SeverityError
	}
	return SeverityWarning
}

// reachable are the nodes that an execution can get to from a trigger or the
// named start: over main connections, and what is attached to those.
func (w *Workflow) reachable(c Catalog, start string) map[string]bool {
	seen := map[string]bool{}
	var queue []string
	visit := func(name string) {
		if w.byName[name] != nil && !seen[name] {
			seen[name] = true
			queue = append(queue, name)
		}
	}
	visit(start)
	if n, err := w.Start(c); err == nil {
		visit(n.Name)
	}
	for _, n := range w.Nodes {
		if !n.Disabled && isTrigger(c, n) {
			visit(n.Name)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, targets := range w.out[queue[0]][Main] {
			for _, t := range targets {
				visit(t.Node)
			}
		}
		for connType, origins := range w.in[queue[0]] {
			if connType == Main {
				continue
			}
			for _, list := range origins {
				for _, o := range list {
					visit(o.Node)
				}
			}
		}
	}
	return seen
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
