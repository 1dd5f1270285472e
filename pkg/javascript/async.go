package javascript

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// ErrPending is returned by CallAsync when the script waits for a promise that
// nothing will settle.
var ErrPending = errors.New("javascript: the script waits for a promise that never settles")

// maxJobs bounds the promise jobs of one call.
const maxJobs = 10_000_000

// CallAsync is Call for an entry function that answers later: it starts with
// args, and is then called with the one argument "poll" whenever the promise
// jobs have run dry. It answers "done" followed by the reply, "wait" followed by
// the milliseconds until its next timer, or anything else when it waits for
// nothing (ErrPending).
func (vm *VM) CallAsync(ctx context.Context, timeout time.Duration, host Host, args ...string) (string, error) {
	vm.begin(ctx, timeout, host)
	defer vm.end()
	if _, _, err := vm.enter(args...); err != nil {
		return "", err
	}
	jobs := 0
	for {
		if err := vm.drain(&jobs); err != nil {
			return "", err
		}
		state, _, err := vm.enter("poll")
		switch {
		case err != nil:
			return "", err
		case len(state) >= 4 && state[:4] == "done":
			return state[4:], nil
		case len(state) >= 4 && state[:4] == "wait":
			ms, _ := strconv.ParseFloat(state[4:], 64)
			if err := vm.sleep(time.Duration(ms * float64(time.Millisecond))); err != nil {
				return "", err
			}
		default:
			if vm.fns.jobPending.call(vm) == 0 {
				return "", ErrPending
			}
		}
	}
}

// drain runs promise jobs until none is left.
func (vm *VM) drain(jobs *int) error {
	for vm.fns.jobPending.call(vm) != 0 {
		if *jobs++; *jobs > maxJobs {
			vm.expired, vm.broken = true, true
		}
		if *jobs&63 == 0 {
			vm.overdue()
		}
		if vm.expired {
			return vm.failure()
		}
		if status := int32(vm.fns.runJob.call(vm)); vm.trap != nil || status < 0 {
			return vm.failure()
		}
	}
	if vm.trap != nil {
		return vm.failure()
	}
	return nil
}

func (vm *VM) sleep(d time.Duration) error {
	if left := time.Until(vm.deadline); d > left {
		d = left + time.Millisecond
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-vm.ctx.Done():
		return vm.ctx.Err()
	}
	if vm.overdue() {
		return vm.failure()
	}
	return nil
}
