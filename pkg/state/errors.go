package state

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// What a caller may want to tell apart. All are wrapped with the attempt.
var (
	// ErrConflict is returned by Commit when the execution is at another version
	// than the caller believes: load it and apply the event again.
	ErrConflict = errors.New("state: execution was changed by someone else")
	// ErrExists is returned by Commit with version 0 when there is an execution of this id.
	ErrExists = errors.New("state: execution exists already")
	// ErrNotFound is returned by Commit, Delete, Workflow, NamedWorkflow and
	// DeleteNamedWorkflow for what is not there.
	ErrNotFound = errors.New("state: not found")
	// ErrFinished is returned by Commit for an execution that is over: its keys
	// have their expiry and do not change any more.
	ErrFinished = errors.New("state: execution is finished")
	// ErrUnfinished is returned by Delete for an execution that is not over.
	ErrUnfinished = errors.New("state: execution is not finished; cancel it first")
	// ErrUnsettled is returned by Delete for an execution that is over, but whose end
	// others are still to be told of.
	ErrUnsettled = errors.New("state: the end of the execution is still being reported; try again in a moment")
	// ErrFilter is returned by List for a status that there is not, and by List and
	// Questions for a cursor that was not given out.
	ErrFilter = errors.New("state: nothing can be listed like that")
	// ErrFull is returned by what writes when Redis is at its maxmemory. Nothing was
	// changed.
	ErrFull = errors.New("state: redis is out of memory (maxmemory); raise it or shorten the retention")
	// ErrUnavailable is returned by everything while Redis cannot be reached or does
	// not take commands: refused connection, time-out, loading, failover.
	ErrUnavailable = errors.New("state: redis is unavailable")
	// ErrCredentials is returned by everything when Redis refuses user or password,
	// or the user may not do what is needed.
	ErrCredentials = errors.New("state: redis refuses the credentials")
)

// unavailable are the error codes of a Redis that will take commands later, or
// elsewhere.
var unavailable = []string{
	"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MISCONF", "NOREPLICAS", "BUSY", "ERR max number of clients",
}

// refused are the error codes of wrong or insufficient credentials.
var refused = []string{"NOAUTH", "WRONGPASS", "NOPERM", "ERR AUTH", "ERR invalid password", "ERR Client sent AUTH", "ERR The user executing the script"}

// wrap gives err its kind and says what was attempted. Messages of the client
// library hold addresses but no passwords.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), classify(err))
}

func classify(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	var answer redis.Error
	if !errors.As(err, &answer) {
		return &kindError{ErrUnavailable, err} // the network, a time-out, the pool
	}
	text := answer.Error()
	// Until version 7 an error inside a script is told in the middle of another.
	is := func(code string) bool { return strings.HasPrefix(text, code) || strings.Contains(text, " -"+code+" ") }
	if is("OOM") {
		return &kindError{ErrFull, err}
	}
	for _, code := range refused {
		if is(code) {
			return &kindError{ErrCredentials, err}
		}
	}
	for _, code := range unavailable {
		if is(code) {
			return &kindError{ErrUnavailable, err}
		}
	}
	return err
}

// kindError is an error with one of the kinds above: errors.Is finds both.
type kindError struct{ kind, err error }

func (e *kindError) Error() string   { return e.kind.Error() + ": " + e.err.Error() }
func (e *kindError) Unwrap() []error { return []error{e.kind, e.err} }
