package coordinator_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/coordinator"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
)

// A submission that is repeated while the first is about to be stored is not answered before that is: neither
// may be told that the execution is there when Redis refuses both.
func TestRepeatedSubmissionIsAnsweredWhenItIsStored(t *testing.T) {
	t.Parallel()
	const lane = 5 // as many as one lane takes together
	handling, resume := make(chan struct{}, 1), make(chan struct{})
	f := startWith(t, 1, func(c *coordinator.Config) {
		c.Lanes, c.Group = 1, lane
		c.Store = &faultyStore{Store: c.Store, fail: func(commit *state.Commit) bool {
			if commit.Execution == "first" {
				handling <- struct{}{}
				<-resume
			}
			return commit.Execution == "x"
		}}
	})
	c := f.coordinators[0]
	submit := func(id engine.ExecutionID, answer func(*queue.Problem)) {
		c.Submit(t.Context(), &queue.Submission{ID: id, Workflow: chain(1)}, func(_ engine.ExecutionID, p *queue.Problem) { answer(p) })
	}
	submit("first", func(*queue.Problem) {})
	<-handling // what is handed in now is taken together
	answers := make(chan *queue.Problem, lane)
	for range lane {
		submit("x", func(p *queue.Problem) { answers <- p })
	}
	close(resume)
	for range lane {
		select {
		case p := <-answers:
			require.NotNil(t, p, "told that it is there")
			require.Equal(t, queue.CodeUnavailable, p.Code)
		case <-time.After(within):
			require.NoError(t, errors.New("no answer"))
		}
	}
}
