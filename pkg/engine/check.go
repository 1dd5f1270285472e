package engine

import (
	"fmt"
	"strings"
)

// Check returns an error naming the first broken invariant. It reads the whole
// State and is meant for tests and for doctors.
//
//  1. The stack is ordered by Seq, and every Seq was given out by Meta.
//  2. A run has at most one owner: a job, an entry of the stack, or a wait.
//  3. A record that is open (status running or waiting) has an owner, and so has a run index
//     at the end of a node's runs that has no record.
//  4. A round's Open is the number of its open records, and its requester is
//     a job, parked, or waits on the stack; only the last round of a requester is open.
//  5. A reference leads to a record.
//  6. An execution that has not begun knows what to begin with. A running one has a job: something with a deadline, a timer or a
//     worker behind it will happen. A waiting one has none, and nothing on its
//     stack could run; every wait has a deadline or an outside party: a webhook, a
//     question, or children that are still to end.
//  7. Every deadline, retry and wait has its timer, and no other timer is set.
//  8. A finished execution has no jobs, waits or timers; unless it failed, nothing
//     else is open either. No record of it is open.
func (m *Machine) Check(s *State) error {
	for _, check := range []func(*State) error{
		checkStack, checkOwners, checkRounds, checkRefs, m.checkLiveness, checkWaits, checkTimers, checkFinished,
	} {
		if err := check(s); err != nil {
			return fmt.Errorf("engine: execution %s: %w", s.Meta.ID, err)
		}
	}
	return nil
}

func checkStack(s *State) error {
	for i, e := range s.Stack {
		if i > 0 && s.Stack[i-1].Seq >= e.Seq {
			return fmt.Errorf("stack entry %d (%s) is not above the one below it", e.Seq, e.Node)
		}
		if e.Seq >= s.Meta.NextTop || e.Seq <= s.Meta.NextLast {
			return fmt.Errorf("stack entry %d (%s) has a number that was not given out", e.Seq, e.Node)
		}
		if e.Kind == EntryResume && (s.resumes[e.RunRef()] != e || e.Progress == nil) {
			return fmt.Errorf("requester %s waits without progress or is not found", e.RunRef())
		}
	}
	return nil
}

// owners lists who owns the runs that are not over.
func (s *State) owners() (map[RunRef]string, error) {
	owner := map[RunRef]string{}
	own := func(ref RunRef, who string) error {
		if other, taken := owner[ref]; taken {
			return fmt.Errorf("run %s belongs to %s and to %s", ref, other, who)
		}
		owner[ref] = who
		return nil
	}
	for _, j := range s.JobsInOrder() {
		if err := own(j.Entry.RunRef(), "job "+string(j.ID)); err != nil {
			return nil, err
		}
	}
	for _, p := range s.ParkedInOrder() {
		if err := own(p.Entry.RunRef(), "wait "+p.Token); err != nil {
			return nil, err
		}
	}
	for _, e := range s.Stack {
		if e.Run < 0 {
			continue
		}
		if err := own(e.RunRef(), fmt.Sprintf("stack entry %d", e.Seq)); err != nil {
			return nil, err
		}
	}
	return owner, nil
}

func checkOwners(s *State) error {
	owner, err := s.owners()
	if err != nil {
		return err
	}
	for _, node := range sortedKeys(s.Run) {
		runs := s.Run[node]
		for i, r := range runs {
			ref := RunRef{node, i}
			if (r == nil && i == len(runs)-1 || r.open()) && owner[ref] == "" {
				return fmt.Errorf("run %s is open and belongs to nobody", ref)
			}
			if r != nil && r.ExecutionIndex >= s.Meta.NextIndex {
				return fmt.Errorf("run %s has an execution index that was not given out", ref)
			}
		}
	}
	for ref := range owner {
		if ref.Run >= len(s.Run[ref.Node]) {
			return fmt.Errorf("run %s has an owner and no place in the run data", ref)
		}
	}
	return nil
}

func checkRounds(s *State) error {
	owner, err := s.owners()
	if err != nil {
		return err
	}
	for _, caller := range s.callers() {
		if owner[caller] == "" {
			return fmt.Errorf("the requester %s of a round is neither a job nor on the stack", caller)
		}
		rounds := s.Rounds[caller]
		for i, r := range rounds {
			if r.Index != i || r.Caller != caller {
				return fmt.Errorf("round %d of %s is in the wrong place", r.Index, caller)
			}
			open := 0
			for _, c := range r.Calls {
				rec := s.Record(RunRef{c.Action.NodeName, c.Run})
				if rec == nil {
					return fmt.Errorf("call %s of %s has no record", c.Action.ID, caller)
				}
				if rec.open() {
					open++
				}
			}
			if open != r.Open {
				return fmt.Errorf("round %d of %s has %d open calls and counts %d", i, caller, open, r.Open)
			}
			if r.Open > 0 && i < len(rounds)-1 {
				return fmt.Errorf("round %d of %s is open and not the last", i, caller)
			}
		}
	}
	for _, e := range s.Stack {
		if e.AsTool() && s.Action(e) == nil {
			return fmt.Errorf("tool entry %d (%s) answers a call that is not there", e.Seq, e.Node)
		}
	}
	for _, j := range s.JobsInOrder() {
		if j.Entry.AsTool() && s.Action(&j.Entry) == nil {
			return fmt.Errorf("job %s (%s) answers a call that is not there", j.ID, j.Entry.Node)
		}
	}
	return nil
}

func checkRefs(s *State) error {
	check := func(who string, refs []Ref) error {
		for _, ref := range refs {
			if ref.Null || ref.Empty || ref.Literal != nil {
				continue
			}
			if s.Record(RunRef{ref.Node, ref.Run}) == nil {
				return fmt.Errorf("%s refers to run %d of %s, which has no record", who, ref.Run, ref.Node)
			}
		}
		return nil
	}
	for _, e := range s.Stack {
		if err := check(fmt.Sprintf("stack entry %d (%s)", e.Seq, e.Node), e.Inputs); err != nil {
			return err
		}
	}
	for _, j := range s.JobsInOrder() {
		if err := check("job "+string(j.ID), j.Entry.Inputs); err != nil {
			return err
		}
	}
	for _, node := range sortedKeys(s.Joins) {
		for _, j := range s.Joins[node] {
			if err := check("the waiting inputs of "+node, j.Inputs); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *Machine) checkLiveness(s *State) error {
	switch s.Meta.Status {
	case StatusNew:
		if s.Begin == nil || len(s.Stack)+len(s.Jobs)+len(s.Parked)+len(s.Timers) > 0 {
			return fmt.Errorf("the execution has not begun and has nothing to begin with, or has begun")
		}
	case StatusRunning:
		if len(s.Jobs) == 0 {
			return fmt.Errorf("the execution is running and waits for nothing")
		}
	case StatusWaiting:
		if len(s.Jobs) > 0 || len(s.Parked) == 0 {
			return fmt.Errorf("the execution is waiting and has %d jobs and %d waits", len(s.Jobs), len(s.Parked))
		}
		for _, e := range s.Stack {
			if e.Kind != EntryResume || !s.setAside(e) {
				return fmt.Errorf("the execution is waiting and %s on its stack could run", e.Node)
			}
		}
	}
	return nil
}

func checkWaits(s *State) error {
	for token, p := range s.Parked {
		e := &p.Entry
		switch r := s.Record(e.RunRef()); {
		case p.Token != token || s.parked[e.RunRef()] != p || e.Wait != token || e.Progress == nil:
			return fmt.Errorf("the wait %s is in the wrong place", token)
		case r == nil || r.Status != StatusWaiting:
			return fmt.Errorf("the record of %s, which waits, does not say so", e.RunRef())
		case p.Wait.Kind == WaitTime && p.Wait.Until == 0:
			return fmt.Errorf("the wait %s has no end", token)
		case p.Wait.Kind == WaitApproval && p.Wait.Question == nil:
			return fmt.Errorf("the wait %s asks nothing", token)
		case p.Wait.Kind == WaitChildren && len(s.outstanding(p)) == 0:
			return fmt.Errorf("the wait %s is for children that have all ended", token)
		case e.AsTool() && s.Action(e) == nil:
			return fmt.Errorf("wait %s (%s) answers a call that is not there", token, e.Node)
		}
	}
	for token := range s.Children {
		if !s.remembered(token) {
			return fmt.Errorf("results of children of the wait %s are kept for nobody", token)
		}
	}
	return nil
}

// remembered: the run that had this wait is not over.
func (s *State) remembered(token string) bool {
	if s.Parked[token] != nil {
		return true
	}
	for _, j := range s.Jobs {
		if j.Entry.Wait == token {
			return true
		}
	}
	for _, e := range s.Stack {
		if e.Wait == token {
			return true
		}
	}
	return false
}

func checkTimers(s *State) error {
	want := map[string]bool{}
	for _, j := range s.JobsInOrder() {
		if j.RetryAt != 0 {
			want[retryTimer(j.ID)] = true
		} else if j.Deadline != 0 {
			want[timeoutTimer(j.ID)] = true
		}
	}
	for token, p := range s.Parked {
		if p.Wait.Until != 0 || p.Deadline != 0 {
			want[waitTimer(token)] = true
		}
	}
	for _, id := range sortedKeys(want) {
		if s.Timers[id] == 0 {
			return fmt.Errorf("the timer %s is not set", id)
		}
	}
	for _, id := range sortedKeys(s.Timers) {
		if !want[id] && id != executionTimer {
			return fmt.Errorf("the timer %s belongs to nothing", id)
		}
	}
	return nil
}

func checkFinished(s *State) error {
	if !s.Meta.Status.Finished() {
		return nil
	}
	if len(s.Jobs)+len(s.Parked)+len(s.Timers) > 0 {
		return fmt.Errorf("the execution is over and has %d jobs, %d waits and %d timers", len(s.Jobs), len(s.Parked), len(s.Timers))
	}
	if s.Meta.Status != StatusError && len(s.Stack)+len(s.Rounds)+len(s.Joins)+len(s.Context)+len(s.Children) > 0 {
		return fmt.Errorf("the execution is over and something is still open")
	}
	var running []string
	for _, node := range sortedKeys(s.Run) {
		for i, r := range s.Run[node] {
			if r.open() {
				running = append(running, RunRef{node, i}.String())
			}
		}
	}
	if len(running) > 0 {
		return fmt.Errorf("the execution is over and has running records: %s", strings.Join(running, ", "))
	}
	return nil
}
