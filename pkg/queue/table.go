package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/reprise-engine/reprise/pkg/table"
)

// EndpointTable fulfils a table.Request. Workers ask it for their nodes, people by the command line.
const EndpointTable = "table"

// refusals are the codes of problems that are a table.Error.
var refusals = []string{string(table.BadRequest), string(table.NotFound), string(table.Conflict), string(table.TooLarge)}

// TableProblem is a table.Error as an answer.
func TableProblem(e *table.Error) *Problem {
	p := &Problem{Code: string(e.Kind), Message: e.Message}
	if e.Hint != "" {
		p.Details = []string{e.Hint}
	}
	return p
}

// ApplyTable asks any coordinator to fulfil a request to the data tables, patiently while none answers:
// repeated with its key, a request changes nothing again. A *table.Error says why it cannot be
// fulfilled.
func (c *Conn) ApplyTable(ctx context.Context, r *table.Request) (*table.Answer, error) {
	sent := *r
	sent.Version = Version
	var answer *table.Answer
	err := patiently(ctx, func() (err error) {
		answer, err = askAny[*table.Answer](ctx, c, subjectAPI+EndpointTable, &sent)
		if problem := (*Problem)(nil); errors.Is(err, ErrNoCoordinator) || errors.As(err, &problem) && problem.Code == CodeUnavailable {
			err = fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		return err
	})
	if err == nil && answer == nil {
		err = errNoAnswer
	}
	if problem := (*Problem)(nil); errors.As(err, &problem) && slices.Contains(refusals, problem.Code) {
		refused := &table.Error{Kind: table.Kind(problem.Code), Message: problem.Message}
		if len(problem.Details) > 0 {
			refused.Hint = problem.Details[0]
		}
		return nil, refused
	}
	if err != nil {
		return nil, fmt.Errorf("data tables: %w", err)
	}
	return answer, nil
}
