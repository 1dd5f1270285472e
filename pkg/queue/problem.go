package queue

import "errors"

// The codes of Problem. The number in the comment is Problem.Status, which is
// also the Nats-Service-Error-Code of the answer.
const (
	CodeBadRequest      = "bad_request"      // 400: the request itself is wrong
	CodeVersion         = "bad_version"      // 400: the message is of a newer version than the reader
	CodeUnauthorized    = "unauthorized"     // 401: the caller has to prove who it is
	CodeForbidden       = "forbidden"        // 403: a token does not fit
	CodeNotFound        = "not_found"        // 404: no such execution, workflow, endpoint …
	CodeConflict        = "conflict"         // 409: the state does not allow it (already decided, already finished)
	CodeGone            = "gone"             // 410: it has expired
	CodeTooLarge        = "too_large"        // 413: the payload exceeds a limit
	CodeInvalidWorkflow = "invalid_workflow" // 422: Details lists what is wrong
	CodeOverloaded      = "overloaded"       // 429: too much work waits already; RetryAfter says when to try again
	CodeInternal        = "internal"         // 500: a fault of reprise
	CodeUnavailable     = "unavailable"      // 503: a server cannot be reached; worth another try
	CodeFull            = "full"             // 507: Redis or NATS has no room for new work
)

var problemStatus = map[string]int{
	CodeBadRequest: 400, CodeVersion: 400, CodeUnauthorized: 401, CodeForbidden: 403, CodeNotFound: 404, CodeConflict: 409, CodeGone: 410,
	CodeTooLarge: 413, CodeInvalidWorkflow: 422, CodeOverloaded: 429, CodeInternal: 500, CodeUnavailable: 503, CodeFull: 507,
}

// Status is the HTTP status that fits the problem's code; 500 for a code that
// is not known.
func (p *Problem) Status() int {
	if status := problemStatus[p.Code]; status != 0 {
		return status
	}
	return 500
}

// ProblemOf is err as a Problem: itself when it is one, else one with a code
// that fits the errors of this package.
func ProblemOf(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	code := CodeInternal
	switch {
	case errors.Is(err, ErrTooLarge):
		code = CodeTooLarge
	case errors.Is(err, ErrFull):
		code = CodeFull
	case errors.Is(err, ErrUnavailable), errors.Is(err, ErrNoStream), errors.Is(err, ErrNoCoordinator),
		errors.Is(err, ErrClosed), errors.Is(err, ErrBlobNotFound):
		code = CodeUnavailable
	}
	return &Problem{Code: code, Message: err.Error()}
}
