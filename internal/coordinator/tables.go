package coordinator

import (
	"context"

	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/table"
)

// table fulfils a request to the data tables. All of it is in the store, so that it does not matter
// which coordinator is asked.
func (c *Coordinator) table(ctx context.Context, r *table.Request) (*table.Answer, error) {
	r.At = c.now()
	answer, err := c.config.Store.ApplyTable(ctx, r)
	if refused := table.AsError(err); refused != nil {
		return nil, queue.TableProblem(refused)
	}
	if err != nil {
		return nil, problemOf(err)
	}
	return answer, nil
}
