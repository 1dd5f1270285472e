package acceptance

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/internal/labtest"
	"github.com/reprise-engine/reprise/internal/redistest"
	"github.com/reprise-engine/reprise/internal/stack"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// within is how long a workflow of these tests may take; machines are busy, and the
// race detector makes the large ones ten times slower.
const within = 120 * time.Second

// anyPort is where links lead.
const anyPort = "127.0.0.1:0"

// lab is a stack on embedded servers and what its workflows call.
type lab struct {
	*stack.Stack
	*labtest.Lab
}

// startLab starts a lab that ends with the test and its subtests.
func startLab(t *testing.T, change ...func(*stack.Config)) *lab {
	t.Helper()
	l := &lab{Lab: labtest.Start(t)}
	config := stack.Config{CredentialsFile: l.Credentials, HTTPAddr: anyPort}
	for _, f := range change {
		f(&config)
	}
	var err error
	l.Stack, err = stack.Start(context.Background(), config)
	require.NoError(t, err)
	t.Cleanup(l.Stop)
	return l
}

// sharedLab is the lab of all tests that need none of their own.
func sharedLab(t *testing.T) *lab {
	t.Helper()
	l, err := shared()
	require.NoError(t, err)
	return l
}

var (
	shared = sync.OnceValues(func() (*lab, error) {
		dir, err := os.MkdirTemp("", "reprise-acceptance-")
		if err != nil {
			return nil, err
		}
		l := &lab{}
		stops = append(stops, func() { _ = os.RemoveAll(dir) })
		if l.Lab, err = labtest.Open(dir); err != nil {
			return nil, err
		}
		stops = append(stops, l.Lab.Close)
		l.Stack, err = stack.Start(context.Background(), stack.Config{CredentialsFile: l.Credentials, Workers: 2, Coordinators: 2, HTTPAddr: anyPort})
		if err != nil {
			return nil, err
		}
		stops = append(stops, l.Stop)
		return l, nil
	})
	stops []func()
)

func TestMain(m *testing.M) {
	code := m.Run()
	for i := len(stops) - 1; i >= 0; i-- {
		stops[i]()
	}
	redistest.StopShared()
	os.Exit(code)
}

// run submits a workflow, waits for its end and returns the run in n8n's shape.
func (l *lab) run(t *testing.T, document []byte, input workflow.Items) gjson.Result {
	t.Helper()
	return l.runOf(t, &queue.Submission{Workflow: document, Input: input})
}

// runOf is run for any submission.
func (l *lab) runOf(t *testing.T, submission *queue.Submission) gjson.Result {
	t.Helper()
	return l.await(t, l.submit(t, submission))
}

func (l *lab) submit(t *testing.T, submission *queue.Submission) engine.ExecutionID {
	t.Helper()
	id, err := l.Conn.Submit(t.Context(), submission)
	require.NoError(t, err)
	return id
}

// await waits for the end of an execution and returns its run. It does not ask
// again and again, which would be work for the coordinators that tests measure.
func (l *lab) await(t *testing.T, id engine.ExecutionID) gjson.Result {
	t.Helper()
	over := make(chan struct{}, 1)
	stop, err := l.Conn.WatchLive(id, func(notice queue.Live) {
		if notice.Kind == engine.LiveExecutionFinished && notice.Status.Finished() {
			select {
			case over <- struct{}{}:
			default:
			}
		}
	})
	require.NoError(t, err)
	defer stop()
	timeout := time.After(within)
	for {
		x, err := l.Conn.Get(t.Context(), id, true)
		require.NoError(t, err)
		if x.Status.Finished() {
			data, err := json.Marshal(x)
			require.NoError(t, err)
			return gjson.ParseBytes(data)
		}
		select {
		case <-over:
		case <-timeout:
			t.Fatalf("execution %s does not end; its stack is %v", id, x.Stack)
		}
	}
}

// inputOf is one item.
func inputOf(object string) workflow.Items { return workflow.Items{{JSON: json.RawMessage(object)}} }
