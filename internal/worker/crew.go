package worker

// crew runs functions in goroutines that stay for the next ones. A job needs a deep stack, and
// a new goroutine copies its own each time that it outgrows it, up to four times in every job.
// There are never more of them than functions ran at once.
type crew struct {
	next chan func()
	over chan struct{}
}

func newCrew() *crew {
	return &crew{next: make(chan func()), over: make(chan struct{})}
}

// run begins with f and returns.
func (c *crew) run(f func()) {
	select {
	case c.next <- f:
	default:
		go c.member(f)
	}
}

func (c *crew) member(f func()) {
	for {
		f()
		select {
		case f = <-c.next:
		case <-c.over:
			return
		}
	}
}

// end lets those go that wait, and the others when they are done.
func (c *crew) end() { close(c.over) }
