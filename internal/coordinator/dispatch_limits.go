package coordinator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// limit is a rate limit that a job is under.
type limit struct {
	name   string
	holder string // asked again it has the same moment
	rate   workflow.Rate
}

// limitName names a limit in the store; node is "" for one of executions. All versions of
// a workflow that has an id share its limits.
func limitName(meta *engine.Meta, node string) string {
	sum := sha256.Sum256([]byte(workflowName(meta) + "\x00" + node))
	return hex.EncodeToString(sum[:16])
}

func workflowName(meta *engine.Meta) string {
	if meta.WorkflowID != "" {
		return meta.WorkflowID
	}
	return meta.WorkflowHash
}

// limitsOf lists the limits of a job: its node's, and its workflow's while no job of the
// execution was answered, so that what waits is the beginning of the execution.
func limitsOf(p *program, s *engine.State, job *engine.Job) []limit {
	n := p.nodes[job.Entry.Node]
	begins := p.rate.Count > 0 && s.Meta.NextJob == len(s.Jobs)
	if n.rate.Count == 0 && !begins {
		return nil
	}
	var limits []limit
	if begins {
		limits = append(limits, limit{limitName(&s.Meta, ""), string(s.Meta.ID), p.rate})
	}
	if n.rate.Count > 0 {
		limits = append(limits, limit{limitName(&s.Meta, job.Entry.Node), string(job.ID), n.rate})
	}
	return limits
}

// offerOf is a committed job as the dispatcher takes it.
func (c *Coordinator) offerOf(x *execution, job *queue.Job, j *engine.Job) offer {
	meta := &x.state.Meta
	o := offer{
		job: job, class: classOf(meta.Priority), tenant: meta.Tenant, workflow: workflowName(meta), started: meta.StartedAt,
	}
	if n := x.program.nodes[j.Entry.Node].node; j.Deadline > 0 {
		o.timeout = int64(n.Timeout)
	}
	if c.heldStore() != nil {
		o.limits = limitsOf(x.program, x.state, j)
	}
	return o
}

// reserveGroup is how many moments are asked for in one round trip.
const reserveGroup = 256

// reserve asks when jobs may go that are under rate limits.
func (c *Coordinator) reserve(entries []*entry) {
	for len(entries) > 0 {
		group := entries[:min(reserveGroup, len(entries))]
		entries = entries[len(group):]
		var wanted []state.Reservation
		var of []int
		for i, e := range group {
			for _, l := range e.limits {
				wanted = append(wanted, state.Reservation{Limit: l.name, Holder: l.holder, Count: l.rate.Count, Per: l.rate.Per})
				of = append(of, i)
			}
		}
		waits := make([]time.Duration, len(group))
		if !c.persist("rate limits cannot be asked", func(ctx context.Context) error {
			got, err := c.heldStore().Reserve(ctx, wanted)
			for k, wait := range got {
				waits[of[k]] = max(waits[of[k]], wait)
			}
			return err
		}) {
			return
		}
		now := c.now()
		for i, e := range group {
			c.dispatch.limited(e, now+waits[i].Milliseconds())
		}
	}
}
