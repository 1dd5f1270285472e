package coordinator

import (
	"bytes"
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/internal/links"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// buildJob resolves what an engine job refers to: its inputs, the rounds
// answered so far, what ended its wait and where it can be resumed.
func (c *Coordinator) buildJob(p *program, s *engine.State, j *engine.Job) *queue.Job {
	n := p.nodes[j.Entry.Node]
	job := &queue.Job{
		Version: queue.Version, ID: j.ID, Execution: s.Meta.ID, Mode: s.Meta.Mode,
		RunIndex: j.Entry.Run, Slice: j.Slice, Attempt: j.Attempt, IdempotencyKey: j.IdempotencyKey,
		Coordinator: c.config.ID, Pool: n.pool, DispatchedAt: j.DispatchedAt, Deadline: j.Deadline,
		Plan: n.raw, PlanHash: n.hash,
		Inputs: s.Inputs(&j.Entry), Source: j.Entry.Source, Context: s.Context[j.Entry.Node],
		Resumption: s.Resumption(&j.Entry), Once: n.once,
	}
	if n.customData {
		job.CustomData = s.CustomData()
	}
	if c.config.Links != nil && n.resumeURL {
		if _, link, ok := engine.SplitToken(j.Token()); ok {
			job.ResumeURL = c.config.Links.ResumeURL(s.Meta.ID, link)
			job.ResumeFormURL = c.config.Links.ResumeFormURL(s.Meta.ID, link)
		}
	}
	if c.config.Links != nil && n.waits {
		job.ApprovalURL = c.config.Links.ApprovalURL(j.Token(), bindOf(s, &j.Entry))
	}
	if action := s.Action(&j.Entry); action != nil {
		job.ToolArguments, job.ToolCallID = action.Input, action.ID
	}
	if j.Slice > 0 {
		job.Rounds = s.Answers(engine.RunRef{Node: j.Entry.Node, Run: j.Entry.Run})
	}
	return job
}

// bindOf is the digest of what a question of this run is about: the call and the
// arguments that are shown. A link made for one call decides no other.
func bindOf(s *engine.State, e *engine.Entry) string {
	var callID string
	var arguments json.RawMessage
	if action := s.Action(e); action != nil {
		callID, arguments = action.ID, shownArguments(action.Input)
	}
	return links.Bind(s.Meta.ID, e.Node, e.Run, callID, arguments)
}

// waitURL is where a wait can be ended over HTTP, or its question read; "" when there is
// no such place.
func (c *Coordinator) waitURL(s *engine.State, p *engine.Parked) string {
	if c.config.Links == nil {
		return ""
	}
	switch p.Wait.Kind {
	case engine.WaitApproval:
		return c.config.Links.ApprovalURL(p.Token, bindOf(s, &p.Entry))
	case engine.WaitWebhook:
		_, link, ok := engine.SplitToken(p.Token)
		if !ok {
			return ""
		}
		w := p.Wait.Webhook
		switch {
		case w != nil && len(w.Form) > 0 && w.Linked:
			return c.config.Links.ResumeFormURL(s.Meta.ID, link)
		case w != nil && len(w.Form) > 0:
			return c.config.Links.FormURL(s.Meta.ID)
		}
		url := c.config.Links.ResumeURL(s.Meta.ID, link)
		if w != nil && w.Suffix != "" && url != "" {
			url += "/" + w.Suffix // as workflows write it: $execution.resumeUrl + "/" + suffix
		}
		return url
	}
	return ""
}

// shownArguments are the arguments that a person is asked to allow, of those a
// gate was called with: the gated tool's, which n8n wraps in toolParameters. They are
// compacted, as storing them may change their spacing.
func shownArguments(given json.RawMessage) json.RawMessage {
	if inner := gjson.GetBytes(given, "toolParameters"); inner.Exists() {
		given = json.RawMessage(inner.Raw)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, given); err != nil {
		return given
	}
	return b.Bytes()
}

// addRunData puts the records into a job that the node's expressions refer to;
// a node that the coordinator runs itself reads the state instead.
func addRunData(p *program, s *engine.State, job *queue.Job, j *engine.Job) {
	n := p.nodes[j.Entry.Node]
	c := collector{state: s, job: job, full: map[string]bool{}}
	for _, name := range n.references.Nodes {
		c.full[name] = true
	}
	if n.references.All {
		for name := range s.Run {
			c.full[name] = true
		}
	}
	for name := range c.full {
		runs := s.Runs(name)
		first := runs - 1
		if n.references.AllRuns {
			first = 0
		}
		for run := max(first, 0); run < runs; run++ {
			c.add(name, run)
		}
	}
	if n.references.Lineage || n.references.All {
		c.lineage(j.Entry.Source, job.Inputs)
	}
	if n.history {
		c.full[j.Entry.Node] = true
		for run := 0; run < s.Runs(j.Entry.Node); run++ {
			c.add(j.Entry.Node, run)
			c.addSources(s.Sources(j.Entry.Node, run))
		}
		c.addSources(j.Entry.Source)
	}
}

// collector gathers records for a job. Records of nodes in full come with
// their items, the others only with the items' lineage.
type collector struct {
	state *engine.State
	job   *queue.Job
	full  map[string]bool
}

func (c *collector) addSources(sources []*workflow.Source) {
	for _, source := range sources {
		if source != nil {
			c.full[source.PreviousNode] = true
			c.add(source.PreviousNode, source.PreviousNodeRun)
		}
	}
}

// add puts one record into the job and reports whether it is new there.
func (c *collector) add(name string, run int) bool {
	if run < 0 || run >= c.state.Runs(name) {
		return false
	}
	if _, ok := c.job.RunData[name][run]; ok {
		return false
	}
	record := c.state.Run[name][run]
	if record == nil {
		return false
	}
	out := queue.JobRecord{Source: record.Source}
	for _, items := range record.Data[workflow.Main] {
		if !c.full[name] {
			items = skeleton(items)
		}
		out.Outputs = append(out.Outputs, items)
	}
	if c.job.RunData == nil {
		c.job.RunData, c.job.Runs = map[string]map[int]queue.JobRecord{}, map[string]int{}
	}
	if c.job.RunData[name] == nil {
		c.job.RunData[name] = map[int]queue.JobRecord{}
		c.job.Runs[name] = c.state.Runs(name)
	}
	c.job.RunData[name][run] = out
	return true
}

// skeleton is items without their content.
func skeleton(items workflow.Items) workflow.Items {
	if items == nil {
		return nil
	}
	bare := make(workflow.Items, len(items))
	for i := range items {
		bare[i] = workflow.Item{JSON: []byte("{}"), PairedItem: items[i].PairedItem}
	}
	return bare
}

// maxLineage bounds how many records a job carries for lineage alone; beyond it
// an expression reports that it cannot follow the item further.
const maxLineage = 10_000

// lineage adds the records on the way from the inputs back to the start.
func (c *collector) lineage(sources []*workflow.Source, inputs []workflow.Items) {
	type step struct {
		node string
		run  int
	}
	seen := map[step]bool{}
	var todo []step
	visit := func(source *workflow.Source) {
		if source == nil {
			return
		}
		if s := (step{source.PreviousNode, source.PreviousNodeRun}); !seen[s] && len(seen) < maxLineage {
			seen[s] = true
			todo = append(todo, s)
		}
	}
	follow := func(items workflow.Items, sources []*workflow.Source) {
		for i := range items {
			for _, paired := range items[i].PairedItem {
				if paired.SourceOverwrite != nil {
					visit(paired.SourceOverwrite)
				} else if paired.Input < len(sources) {
					visit(sources[paired.Input])
				}
			}
		}
	}
	for _, source := range sources {
		visit(source)
	}
	for _, items := range inputs {
		follow(items, sources)
	}
	for ; len(todo) > 0; todo = todo[1:] {
		at := todo[0]
		c.add(at.node, at.run)
		for _, items := range c.outputs(at.node, at.run) {
			follow(items, c.state.Sources(at.node, at.run))
		}
	}
}

func (c *collector) outputs(name string, run int) []workflow.Items {
	if records := c.state.Run[name]; run >= 0 && run < len(records) && records[run] != nil {
		return records[run].Data[workflow.Main]
	}
	return nil
}
