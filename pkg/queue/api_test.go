package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
)

func serve(t *testing.T, c *Conn, api API) {
	t.Helper()
	stop, err := c.ServeAPI(api)
	require.NoError(t, err)
	t.Cleanup(stop)
	require.NoError(t, c.Flush(t.Context()))
}

func TestAPI(t *testing.T) {
	coordinator, client := start(t)
	ctx := t.Context()
	_, err := client.Get(ctx, "e", false)
	require.ErrorIs(t, err, ErrNoCoordinator)
	_, err = client.Submit(ctx, &Submission{})
	require.ErrorIs(t, err, ErrNoCoordinator)

	big := json.RawMessage(`{"resultData":"` + strings.Repeat("x", 3<<20) + `"}`)
	var submitted *Submission
	var canceled *CancelRequest
	serve(t, coordinator, API{
		Version: "1.2.3",
		Submit: func(_ context.Context, s *Submission, answer func(engine.ExecutionID, *Problem)) {
			submitted = s
			if s.WorkflowHash == "bad" {
				answer("", &Problem{Code: CodeInvalidWorkflow, Message: "2 problems\nin it", Details: []string{"a", "b"}})
				return
			}
			go answer("new-id", nil)
		},
		Get: func(_ context.Context, r *GetRequest) (*Execution, error) {
			switch {
			case r.ID == "none":
				return nil, fmt.Errorf("load: %w", &Problem{Code: CodeNotFound, Message: "no execution none"})
			case r.ID == "broken":
				return nil, errors.New("redis is away")
			case r.Data:
				return &Execution{ID: r.ID, Status: engine.StatusSuccess, Data: big}, nil
			}
			return &Execution{ID: r.ID, Status: engine.StatusRunning, Stack: []string{"A"}}, nil
		},
		List: func(_ context.Context, r *ListRequest) (*ListAnswer, error) {
			return &ListAnswer{Executions: []Execution{{ID: "e", Status: r.Status}}, Cursor: "next"}, nil
		},
		Cancel: func(_ context.Context, r *CancelRequest) error { canceled = r; return nil },
		More: map[string]Handler{"approve": Handle(func(_ context.Context, r *struct{ ID string }) (string, error) {
			if r.ID == "" {
				return "", &Problem{Code: CodeConflict, Message: "already decided"}
			}
			return r.ID + " approved", nil
		})},
	})

	id, err := client.Submit(ctx, &Submission{Start: "A"})
	require.NoError(t, err)
	require.EqualValues(t, "new-id", id)
	require.Equal(t, &Submission{Version: Version, Start: "A"}, submitted)
	_, err = client.Submit(ctx, &Submission{Workflow: big})
	require.NoError(t, err)
	require.Equal(t, big, submitted.Workflow)
	_, err = client.Submit(ctx, &Submission{WorkflowHash: "bad"})
	var problem *Problem
	require.ErrorAs(t, err, &problem)
	require.Equal(t, &Problem{Code: CodeInvalidWorkflow, Message: "2 problems\nin it", Details: []string{"a", "b"}}, problem)

	e, err := client.Get(ctx, "e1", false)
	require.NoError(t, err)
	require.Equal(t, &Execution{ID: "e1", Status: engine.StatusRunning, Stack: []string{"A"}}, e)
	e, err = client.Get(ctx, "e1", true)
	require.NoError(t, err)
	require.Equal(t, big, e.Data)
	_, err = client.Get(ctx, "none", false)
	require.ErrorAs(t, err, &problem)
	require.Equal(t, CodeNotFound, problem.Code)
	_, err = client.Get(ctx, "broken", false)
	require.ErrorAs(t, err, &problem)
	require.Equal(t, &Problem{Code: CodeInternal, Message: "redis is away"}, problem)

	list, err := client.List(ctx, ListRequest{Status: engine.StatusError})
	require.NoError(t, err)
	require.Equal(t, &ListAnswer{Executions: []Execution{{ID: "e", Status: engine.StatusError}}, Cursor: "next"}, list)
	require.NoError(t, client.Cancel(ctx, "e1", "no longer needed"))
	require.Equal(t, &CancelRequest{Version: Version, ID: "e1", Reason: "no longer needed"}, canceled)
	text, err := Call[string](ctx, client, "approve", map[string]string{"ID": "x"})
	require.NoError(t, err)
	require.Equal(t, "x approved", text)
	_, err = Call[string](ctx, client, "approve", nil)
	require.ErrorAs(t, err, &problem)
	require.Equal(t, 409, problem.Status())
	require.Eventually(t, func() bool { return storedBlobs(t, coordinator) == 0 }, patience, 5*time.Millisecond)

	// What a client in another language sees.
	m, err := client.nc.Request("reprise.submit", []byte(`{"workflowHash":"bad"}`), patience)
	require.NoError(t, err)
	require.Equal(t, "422", m.Header.Get("Nats-Service-Error-Code"))
	require.Equal(t, "2 problems in it", m.Header.Get("Nats-Service-Error"))
	require.JSONEq(t, `{"code":"invalid_workflow","message":"2 problems\nin it","details":["a","b"]}`, string(m.Data))
	m, err = client.nc.Request("reprise.get", []byte(`not json`), patience)
	require.NoError(t, err)
	require.Equal(t, "400", m.Header.Get("Nats-Service-Error-Code"))
	m, err = client.nc.Request("$SRV.INFO.reprise", nil, patience)
	require.NoError(t, err)
	for _, want := range []string{`"version":"1.2.3"`, `"reprise.submit"`, `"reprise.approve"`} {
		require.Contains(t, string(m.Data), want)
	}
	m, err = client.nc.RequestMsg(&nats.Msg{Subject: "reprise.submit", Header: nats.Header{HeaderBlob: {strings.Repeat("ab", 32)}}}, patience)
	require.NoError(t, err)
	require.Equal(t, "503", m.Header.Get("Nats-Service-Error-Code"), "a payload that is not there can be stored and sent again")
}

func TestProblemTooLargeForAMessage(t *testing.T) {
	coordinator, client := start(t)
	details := make([]string, 5000)
	for i := range details {
		details[i] = strings.Repeat("d", 1000)
	}
	serve(t, coordinator, API{Submit: func(_ context.Context, _ *Submission, answer func(engine.ExecutionID, *Problem)) {
		answer("", &Problem{Code: CodeInvalidWorkflow, Message: "many", Details: details})
	}})
	_, err := client.Submit(t.Context(), &Submission{})
	var problem *Problem
	require.ErrorAs(t, err, &problem)
	require.Len(t, problem.Details, 20)
}

func TestWaitFinished(t *testing.T) {
	coordinator, client := start(t)
	status := make(chan engine.Status, 1)
	now := engine.StatusRunning
	serve(t, coordinator, API{Get: func(_ context.Context, r *GetRequest) (*Execution, error) {
		select {
		case now = <-status:
		default:
		}
		return &Execution{ID: r.ID, Status: now, Data: json.RawMessage(fmt.Sprint(r.Data))}, nil
	}})
	type outcome struct {
		e   *Execution
		err error
	}
	done := make(chan outcome)
	watched := func() bool {
		stats, err := coordinator.nc.Request("reprise.live.e", nil, 50*time.Millisecond)
		return err == nil && stats != nil || !errors.Is(err, nats.ErrNoResponders)
	}
	go func() {
		e, err := client.WaitFinished(t.Context(), "e", true, false)
		done <- outcome{e, err}
	}()
	require.Eventually(t, watched, patience, time.Millisecond)
	status <- engine.StatusSuccess
	require.NoError(t, coordinator.PublishLive("e", []engine.Live{{Kind: engine.LiveExecutionFinished}}))
	got := <-done
	require.NoError(t, got.err)
	require.Equal(t, engine.StatusSuccess, got.e.Status)
	require.Equal(t, "true", string(got.e.Data))

	status <- engine.StatusWaiting
	e, err := client.WaitFinished(t.Context(), "e", false, true)
	require.NoError(t, err)
	require.Equal(t, engine.StatusWaiting, e.Status)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = client.WaitFinished(ctx, "e", false, false)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// A coordinator that got the question and died with it costs a look, not the whole wait.
func TestWaitAsksAnotherCoordinator(t *testing.T) {
	coordinator, client := start(t)
	var asked atomic.Int64
	dead := make(chan struct{})
	defer close(dead)
	serve(t, coordinator, API{Get: func(_ context.Context, r *GetRequest) (*Execution, error) {
		if asked.Add(1) == 1 {
			<-dead
		}
		return &Execution{ID: r.ID, Status: engine.StatusSuccess}, nil
	}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	begun := time.Now()
	e, err := client.WaitFinished(ctx, "e", false, false)
	require.NoError(t, err)
	require.Equal(t, engine.StatusSuccess, e.Status)
	require.Less(t, time.Since(begun), 4*lookPatience)
}
