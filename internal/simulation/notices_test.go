package simulation

import (
	"fmt"
	"slices"

	"github.com/reprise-engine/reprise/internal/coordinator"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

var _ coordinator.Notices = transportOf{}

// notices are the handlers of what others say of themselves.
type notices struct {
	worker      func(queue.WorkerNotice)
	coordinator func(queue.CoordinatorNotice)
	gone        func([]engine.JobID)
}

func (t transportOf) ServeNotices(worker func(queue.WorkerNotice), other func(queue.CoordinatorNotice), gone func([]engine.JobID)) (func(), error) {
	return t.serve(func(p *process, on bool) {
		if p.notices = nil; on {
			p.notices = &notices{worker, other, gone}
		}
	})
}

// announce tells all coordinators, each by a message of its own. Nobody waits for it.
func (t transportOf) announce(kind, key string, tell func(n *notices)) error {
	w := t.p.w
	o := &operation{p: t.p, kind: kind, key: key}
	o.exec = func() {
		for _, p := range w.alive(func(p *process) bool { return p.notices != nil }) {
			if w.fault(w.profile.lost) {
				continue
			}
			w.after(w.latency(), &event{name: p.name + " hears " + kind + " " + key, owner: p, run: func() {
				p.mu.Lock()
				n := p.notices
				p.mu.Unlock()
				if n != nil {
					tell(n)
				}
			}})
		}
	}
	o.tell()
	return nil
}

func (t transportOf) AnnounceCoordinator(n queue.CoordinatorNotice) error {
	return t.announce("coordinator", n.ID, func(to *notices) { to.coordinator(n) })
}

func (t transportOf) AnnounceWorker(n queue.WorkerNotice) error {
	return t.announce("worker", n.ID, func(to *notices) { to.worker(n) })
}

func (t transportOf) AnnounceSettled(jobs []engine.JobID) error {
	jobs = slices.Clone(jobs)
	return t.announce("settled", fmt.Sprint(jobs), func(to *notices) { to.gone(slices.Clone(jobs)) })
}
