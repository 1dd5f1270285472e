package javascript

import (
	"errors"
	"fmt"
	"time"
)

// ErrClosed is returned by a Runtime that was closed.
var ErrClosed = errors.New("javascript: the runtime is closed")

// Error is an exception that a script did not catch.
type Error struct {
	Name    string // "TypeError", "" when something else than an Error was thrown
	Message string
	Stack   string
}

func (e *Error) Error() string {
	if e.Name == "" {
		return e.Message
	}
	return e.Name + ": " + e.Message
}

// TimeoutError says that a script ran into its deadline.
type TimeoutError struct{ After time.Duration }

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("the script was stopped after %s", e.After)
}

// MemoryError says that a script reached its memory limit.
type MemoryError struct{ LimitBytes uint64 }

func (e *MemoryError) Error() string {
	return fmt.Sprintf("the script needs more than %d MB of memory", e.LimitBytes>>20)
}

// TrapError says that the engine itself stopped; the VM is thrown away.
type TrapError struct{ Cause error }

func (e *TrapError) Error() string { return "the JavaScript engine stopped: " + e.Cause.Error() }
func (e *TrapError) Unwrap() error { return e.Cause }
