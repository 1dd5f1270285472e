package coordinator

import (
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// The classes of waiting jobs, and how many of each are taken in a round in which all
// have some: a class goes before the next without starving it.
const (
	classHigh = iota
	classNormal
	classLow
	classes
)

var classWeights = [classes]uint64{16, 4, 1}

// classStride is what one job of a class adds to its pass.
func classStride(class int) uint64 { return classWeights[classHigh] / classWeights[class] }

func classOf(priority string) int {
	switch priority {
	case workflow.PriorityHigh:
		return classHigh
	case workflow.PriorityLow:
		return classLow
	}
	return classNormal
}

// fairQueue orders the jobs of a pool that wait. Classes go by their weights (stride
// scheduling); within a class tenants take turns, within a tenant workflows do, and of a
// workflow the execution that started first comes first.
type fairQueue struct {
	classes [classes]classQueue
	pass    uint64 // of the class that was served last, before it was
	size    int
}

type classQueue struct {
	pass    uint64
	size    int
	tenants turns[string, *tenantQueue]
}

type tenantQueue struct {
	workflows turns[string, *workflowQueue]
}

type workflowQueue struct {
	jobs jobHeap
}

// turns are queues by name that are served one after the other.
type turns[K comparable, Q any] struct {
	byName map[K]Q
	order  []K
}

// get finds a queue, or makes it, last in turn.
func (t *turns[K, Q]) get(name K, make_ func() Q) Q {
	if q, ok := t.byName[name]; ok {
		return q
	}
	if t.byName == nil {
		t.byName = map[K]Q{}
	}
	q := make_()
	t.byName[name] = q
	t.order = append(t.order, name)
	return q
}

// next takes the queue whose turn it is; back puts it to the end, or drop forgets it.
func (t *turns[K, Q]) next() (name K, q Q) {
	name = t.order[0]
	t.order = t.order[1:]
	return name, t.byName[name]
}

func (t *turns[K, Q]) back(name K) { t.order = append(t.order, name) }
func (t *turns[K, Q]) drop(name K) { delete(t.byName, name) }
func (t *turns[K, Q]) empty() bool { return len(t.order) == 0 }

func (q *fairQueue) push(e *entry) {
	c := &q.classes[e.class]
	if c.size == 0 {
		*c = classQueue{pass: max(c.pass, q.pass)} // no claims from the time it had nothing
	}
	c.size++
	q.size++
	tenant := c.tenants.get(e.tenant, func() *tenantQueue { return &tenantQueue{} })
	tenant.workflows.get(e.workflow, func() *workflowQueue { return &workflowQueue{} }).jobs.push(e)
}

// remove takes out a job that waits; what is left of it is skipped by pop.
func (q *fairQueue) remove(e *entry) {
	q.classes[e.class].size--
	q.size--
}

// pop takes the job that is to go next; nil when none waits.
func (q *fairQueue) pop() *entry {
	var best *classQueue
	class := 0
	for i := range q.classes {
		if c := &q.classes[i]; c.size > 0 && (best == nil || c.pass < best.pass) {
			best, class = c, i
		}
	}
	if best == nil {
		return nil
	}
	q.pass = best.pass
	best.pass += classStride(class)
	e := best.pop()
	best.size--
	q.size--
	return e
}

// pop takes the next job of a class that has one.
func (c *classQueue) pop() *entry {
	for {
		name, tenant := c.tenants.next()
		e := tenant.pop()
		if tenant.workflows.empty() {
			c.tenants.drop(name)
		} else {
			c.tenants.back(name)
		}
		if e != nil {
			return e
		}
	}
}

func (t *tenantQueue) pop() *entry {
	for !t.workflows.empty() {
		name, w := t.workflows.next()
		e := w.jobs.popWaiting()
		if len(w.jobs) == 0 {
			t.workflows.drop(name)
		} else {
			t.workflows.back(name)
		}
		if e != nil {
			return e
		}
	}
	return nil
}

// jobHeap has the job of the oldest execution first.
type jobHeap []*entry

func (h jobHeap) less(i, j int) bool {
	a, b := h[i], h[j]
	if a.started != b.started {
		return a.started < b.started
	}
	if a.execution != b.execution {
		return a.execution.id < b.execution.id
	}
	return a.order < b.order
}

func (h *jobHeap) push(e *entry) {
	*h = append(*h, e)
	up(*h, len(*h)-1, h.less)
}

// popWaiting takes the first job that still waits.
func (h *jobHeap) popWaiting() *entry {
	for len(*h) > 0 {
		e := (*h)[0]
		last := len(*h) - 1
		(*h)[0], (*h)[last] = (*h)[last], nil
		*h = (*h)[:last]
		down(*h, 0, h.less)
		if e.state == stateWaiting {
			return e
		}
	}
	return nil
}

// dueHeap has the job first whose rate limit lets it go first.
type dueHeap []*entry

func (h dueHeap) less(i, j int) bool {
	if h[i].due != h[j].due {
		return h[i].due < h[j].due
	}
	return h[i].order < h[j].order
}

func (h *dueHeap) push(e *entry) {
	*h = append(*h, e)
	up(*h, len(*h)-1, h.less)
}

// popDue takes the first job that is due at now and still held.
func (h *dueHeap) popDue(now int64) *entry {
	for len(*h) > 0 && (*h)[0].due <= now {
		e := (*h)[0]
		last := len(*h) - 1
		(*h)[0], (*h)[last] = (*h)[last], nil
		*h = (*h)[:last]
		down(*h, 0, h.less)
		if e.state == stateLimited {
			return e
		}
	}
	return nil
}

func up(h []*entry, i int, less func(i, j int) bool) {
	for i > 0 {
		parent := (i - 1) / 2
		if !less(i, parent) {
			return
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

func down(h []*entry, i int, less func(i, j int) bool) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && less(child+1, child) {
			child++
		}
		if !less(child, i) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}
