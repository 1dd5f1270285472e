package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// overviews are answers one after the other.
type overviews struct {
	answers []*queue.QueueAnswer
	counted []bool
	dead    int
	err     error
}

func (o *overviews) Queue(_ context.Context, counts bool) (*queue.QueueAnswer, error) {
	o.counted = append(o.counted, counts)
	if o.err != nil {
		return nil, o.err
	}
	next := o.answers[0]
	o.answers = o.answers[1:]
	return next, nil
}

func (o *overviews) CountDead(context.Context) (int, error) { return o.dead, nil }

func TestTopMeasuresRates(t *testing.T) {
	fleet := func(at int64, started, finished uint64, held int, other int64) *queue.QueueAnswer {
		return &queue.QueueAnswer{At: at, Coordinators: 2, Fleet: []queue.QueueCoordinator{
			{ID: "one", Seen: at, Started: started, Finished: finished, Held: held, LagMillis: 12},
			{ID: "two", Seen: other, Started: started, Finished: started},
		}}
	}
	first := fleet(1000, 10, 5, 0, 500)
	first.Executions = map[engine.Status]int64{engine.StatusRunning: 4}
	from := &overviews{answers: []*queue.QueueAnswer{first, fleet(3000, 30, 9, 7, 500)}, dead: 2}
	top := newTop(from)
	require.NoError(t, top.look(t.Context()))
	var b strings.Builder
	top.draw(&b, style{})
	require.Contains(t, b.String(), "started -/s   finished -/s   dead letters: 2")
	require.NoError(t, top.look(t.Context()))
	require.Equal(t, []bool{true, false}, from.counted, "servers are not asked for counts each second")
	b.Reset()
	top.draw(&b, style{})
	require.Contains(t, b.String(), "started 10.0/s   finished 2.0/s   dead letters: 2", "two has said nothing new")
	require.Contains(t, b.String(), "running: 4", "the last counts stay")
	require.Regexp(t, `one +7 +12ms +10\.0/s +2\.0/s\n`, b.String())
	require.Regexp(t, `two +0 +0s +-/s +-/s\n`, b.String())

	from.err = errors.New("nobody\nanswers")
	require.Error(t, top.look(t.Context()))
	require.Regexp(t, `^\x1b\[Hno answer: nobody answers\x1b\[K\r\nreprise`, top.frame(nil), "the last picture stays")
}

func TestRatesForgetWhatIsLongAgo(t *testing.T) {
	r := &rates{}
	for second := range int64(60) {
		r.add(queue.QueueCoordinator{Seen: second * 1000, Started: uint64(max(0, second-40) * 5)})
	}
	started, _, ok := r.perSecond()
	require.True(t, ok)
	require.InDelta(t, 5, started, 0.01)
	require.LessOrEqual(t, len(r.said), 12)
	r.add(queue.QueueCoordinator{Seen: 1000, Started: 1})
	again, _, _ := r.perSecond()
	require.InDelta(t, started, again, 0, "an older notice changes nothing")
}

// The command prints one picture where there is no terminal.
func TestTopOnce(t *testing.T) {
	l := sharedLab(t)
	o := reprise(t, "top", "--nats", l.stack.NATSURL)
	require.Equal(t, 0, o.code, o.stderr)
	require.Contains(t, o.stdout, "COORDINATOR")
	require.Contains(t, o.stdout, "WORKER")
	require.NotContains(t, o.stdout, "\x1b")
	o = reprise(t, "top", "--nats", l.stack.NATSURL, "--output", "json")
	require.Equal(t, 0, o.code, o.stderr)
	var p struct {
		Coordinators int
		Fleet        []queue.QueueCoordinator
		Executions   map[string]int
		DeadLetters  *int
	}
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &p))
	require.Equal(t, 1, p.Coordinators)
	require.Len(t, p.Fleet, 1)
	require.NotNil(t, p.DeadLetters)
	require.NotNil(t, p.Executions)
}
