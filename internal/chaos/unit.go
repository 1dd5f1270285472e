package chaos

import (
	"context"
	"sync"
	"time"
)

// restartDelay is how long a supervisor waits after a start that failed.
const restartDelay = 300 * time.Millisecond

// running is a process that runs.
type running interface {
	pid() int
	kill()                  // SIGKILL, and wait for the end
	gone() <-chan struct{}  // closed when it has ended
	signal(stop bool) error // SIGSTOP or SIGCONT
}

// unit is one member of the fleet and its supervisor: whenever its process has
// ended, the unit starts a new one.
type unit struct {
	role, name string
	start      func(context.Context) (running, error)

	mu      sync.Mutex
	now     running // nil while there is none
	paused  bool
	expect  bool          // its end is our doing
	down    time.Duration // how long to wait before the next start
	up      chan struct{} // closed while a process runs
	lastErr error
	ended   int // times that a process ended by itself
}

func newUnit(role, name string, start func(context.Context) (running, error)) *unit {
	return &unit{role: role, name: name, start: start, up: make(chan struct{})}
}

// supervise keeps a process running until ctx ends, then kills it.
func (u *unit) supervise(ctx context.Context) {
	for ctx.Err() == nil {
		p, err := u.start(ctx)
		if err != nil {
			u.mu.Lock()
			u.lastErr = err
			u.mu.Unlock()
			pause(ctx, restartDelay)
			continue
		}
		u.mu.Lock()
		u.now, u.expect, u.down = p, false, 0
		close(u.up)
		u.mu.Unlock()
		select {
		case <-p.gone():
		case <-ctx.Done():
			p.kill()
		}
		u.mu.Lock()
		if !u.expect && ctx.Err() == nil {
			u.ended++
		}
		u.now, u.paused, u.up = nil, false, make(chan struct{})
		down := u.down
		u.mu.Unlock()
		pause(ctx, down)
	}
}

// pause waits for a while, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// await waits until a process runs.
func (u *unit) await(ctx context.Context) error {
	u.mu.Lock()
	up := u.up
	u.mu.Unlock()
	select {
	case <-up:
		return nil
	case <-ctx.Done():
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.lastErr != nil {
			return u.lastErr
		}
		return ctx.Err()
	}
}

// free says whether a process runs and is not paused.
func (u *unit) free() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.now != nil && !u.paused
}

// kill kills the process and has the next one start after a while. It returns the
// pid, or 0 when there was none.
func (u *unit) kill(down time.Duration) int {
	u.mu.Lock()
	p := u.now
	if p == nil {
		u.mu.Unlock()
		return 0
	}
	u.expect, u.down = true, down
	u.mu.Unlock()
	p.kill()
	return p.pid()
}

// stop stops the process where it is; resume lets it go on. It returns the pid, or 0
// when it could not.
func (u *unit) stop() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.now == nil || u.paused || u.now.signal(true) != nil {
		return 0
	}
	u.paused = true
	return u.now.pid()
}

func (u *unit) resume() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.now != nil && u.paused {
		_ = u.now.signal(false)
		u.paused = false
	}
}

// endedByItself is how often a process of the unit ended though nobody killed it.
func (u *unit) endedByItself() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.ended
}
