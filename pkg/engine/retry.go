package engine

import (
	"bytes"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// tries is how many attempts a node has and how long it waits between them,
// in milliseconds. As in n8n an unset or zero value means 3 tries and one
// second, and both have limits.
func tries(n *workflow.Node) (limit int, wait int64) {
	if !n.RetryOnFail {
		return 1, 0
	}
	limit, wait = n.MaxTries, int64(n.WaitBetweenTries)
	if limit == 0 {
		limit = 3
	}
	if wait == 0 {
		wait = 1000
	}
	return min(max(limit, 2), 5), min(max(wait, 0), 5000)
}

// retry sets the next attempt of a failed one, if the node has any left. err
// is nil for a soft failure: outputs that report an error. When the execution is
// stopping the attempt is left to whoever retries the execution.
func (t *tx) retry(job *OpenJob, node *workflow.Node, err *NodeError) bool {
	limit, wait := tries(node)
	if job.Attempt >= limit || err != nil && err.NotRetryable || t.childFailed(&job.Entry) {
		return false
	}
	if t.s.stopping() {
		t.abandon(&job.Entry, job.Progress)
		t.putBack(job)
		return true
	}
	next := *job
	next.ID = t.jobID()
	next.Attempt++
	next.Retries++
	next.Deadline = 0
	// The attempt that failed was answered, so that nobody was lost with it.
	next.GivenAgain, next.GivenTo = 0, ""
	next.RetryAt = t.at + wait
	if err != nil {
		t.s.Meta.LastNode = job.Entry.Node
	}
	t.setTimer(retryTimer(next.ID), next.RetryAt)
	t.putJob(&next)
	return true
}

// childFailed reports whether an execution that the run waited for did not end
// well: calling the node again would only show it the same end.
func (t *tx) childFailed(e *Entry) bool {
	for _, c := range t.s.Children[e.Wait] {
		if c.Status == StatusError || c.Status == StatusCanceled {
			return true
		}
	}
	return false
}

// retryNow hands out an attempt whose wait is over.
func (t *tx) retryNow(job *OpenJob) {
	t.clearTimer(retryTimer(job.ID))
	next := *job
	t.dispatch(&next)
}

// softFailure reports outputs whose first item says "error" without the node
// having failed.
func softFailure(outputs []workflow.Items) bool {
	if len(outputs) == 0 || len(outputs[0]) == 0 || !bytes.Contains(outputs[0][0].JSON, []byte(`"error"`)) {
		return false
	}
	switch e := gjson.GetBytes(outputs[0][0].JSON, "error"); e.Type {
	case gjson.Null, gjson.False:
		return false
	default:
		return e.Exists()
	}
}
