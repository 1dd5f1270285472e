package engine

import (
	"sort"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// RunExecutionData is a run in n8n's shape.
type RunExecutionData struct {
	ID        ExecutionID `json:"id,omitempty"`
	Status    Status      `json:"status"`
	Mode      string      `json:"mode,omitempty"`
	StartedAt int64       `json:"startedAt,omitempty"` // milliseconds since 1970
	StoppedAt int64       `json:"stoppedAt,omitempty"`
	Finished  bool        `json:"finished"` // ended well
	Data      struct {
		ResultData ResultData `json:"resultData"`
	} `json:"data"`
}

// ResultData is n8n's resultData.
type ResultData struct {
	RunData          map[string][]*Record `json:"runData"`
	LastNodeExecuted string               `json:"lastNodeExecuted,omitempty"`
	Error            *NodeError           `json:"error,omitempty"`
	Metadata         map[string]string    `json:"metadata,omitempty"` // State.CustomData
}

// RunExecutionData exports the run. Runs in flight have a record with status
// running; a requester that was waiting when the execution failed has none, as
// in n8n.
//
// The executionIndex of the records is the order in which one tool after
// another would have run: first a run, then its rounds with all that belongs
// to each call. So the same run has the same indexes whatever order the
// results of parallel tools came in; startTime tells what was when.
func (s *State) RunExecutionData() *RunExecutionData {
	out := &RunExecutionData{
		ID: s.Meta.ID, Status: s.Meta.Status, Mode: s.Meta.Mode,
		StartedAt: s.Meta.StartedAt, StoppedAt: s.Meta.StoppedAt,
		Finished: s.Meta.Status == StatusSuccess,
	}
	out.Data.ResultData = ResultData{
		RunData: map[string][]*Record{}, LastNodeExecuted: s.Meta.LastNode, Error: s.Meta.Error, Metadata: s.CustomData(),
	}
	began := s.began()
	for node, runs := range s.Run {
		var list []*Record
		for i, r := range runs {
			if r == nil {
				r = began[RunRef{node, i}]
			}
			if r == nil {
				continue
			}
			for len(list) < i { // a run that left no record before one that did
				list = append(list, &Record{Source: []*workflow.Source{}})
			}
			list = append(list, r)
		}
		if list != nil {
			out.Data.ResultData.RunData[node] = list
		}
	}
	serialise(out.Data.ResultData.RunData)
	return out
}

// began makes records for the runs of the main flow that are not over.
func (s *State) began() map[RunRef]*Record {
	found := map[RunRef]*Record{}
	if s.Meta.Status.Finished() {
		return found
	}
	add := func(e *Entry, p Progress) {
		found[e.RunRef()] = &Record{
			StartTime: p.StartTime, ExecutionIndex: p.ExecutionIndex, ExecutionTime: p.Spent,
			Status: StatusRunning, Source: e.Source,
		}
	}
	for _, j := range s.Jobs {
		add(&j.Entry, j.Progress)
	}
	for _, e := range s.resumes {
		add(e, *e.Progress)
	}
	return found
}

// serialise replaces the records by copies with indexes in serial order.
func serialise(runData map[string][]*Record) {
	type node struct {
		ref RunRef
		r   *Record
	}
	children := map[RunRef][]node{}
	var top []node
	for name, runs := range runData {
		for i, r := range runs {
			n := node{RunRef{name, i}, r}
			if user, ok := r.serves(n.ref); ok && user.Run < len(runData[user.Node]) {
				children[user] = append(children[user], n)
			} else {
				top = append(top, n)
			}
		}
	}
	inOrder := func(list []node) {
		sort.Slice(list, func(i, j int) bool {
			if a, b := list[i].r.StartTime == 0, list[j].r.StartTime == 0; a != b {
				return b // not begun yet
			}
			if a, b := list[i].r.ExecutionIndex, list[j].r.ExecutionIndex; a != b {
				return a < b
			}
			if a, b := list[i].ref.Node, list[j].ref.Node; a != b {
				return a < b
			}
			return list[i].ref.Run < list[j].ref.Run
		})
	}
	next := 0
	var number func(list []node)
	number = func(list []node) {
		inOrder(list)
		for _, n := range list {
			r := *n.r
			r.ExecutionIndex = next
			next++
			runData[n.ref.Node][n.ref.Run] = &r
			number(children[n.ref])
		}
	}
	number(top)
}

// serves names the run that a run was made for: its requester when it was a
// tool call, its user when it was a sub-node, whose record points to itself.
func (r *Record) serves(self RunRef) (user RunRef, ok bool) {
	if r.Metadata == nil || len(r.Source) == 0 || r.Source[0] == nil {
		return RunRef{}, false
	}
	user = RunRef{Node: r.Source[0].PreviousNode, Run: r.Source[0].PreviousNodeRun}
	if r.Metadata.Round != nil {
		return user, true
	}
	for _, sub := range r.Metadata.SubRun {
		if sub.Node == self.Node && sub.RunIndex == self.Run {
			return user, true
		}
	}
	return RunRef{}, false
}
