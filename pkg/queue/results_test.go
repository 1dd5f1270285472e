package queue

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

func TestResultIsCommittedThenAcknowledgedForTheWorker(t *testing.T) {
	coordinator, worker := start(t)
	var got *Result
	var size int
	stop, err := coordinator.ServeResults("c1", func(r *Result, n int, reply func(Reply)) {
		got, size = r, n
		require.NoError(t, coordinator.Ack(r.Ack))
		go reply(Reply{Verdict: VerdictOK})
	})
	require.NoError(t, err)
	defer stop()

	publish(t, coordinator, job(1))
	d := next(t, jobs(t, worker, WorkerConfig{Slots: 1}))
	want := result(d, "done")
	reply, err := worker.SendResult(t.Context(), d.Job().Coordinator, want)
	require.NoError(t, err)
	require.Equal(t, Reply{Verdict: VerdictOK}, reply)
	require.Equal(t, want, got)
	data, err := encode(want)
	require.NoError(t, err)
	require.Equal(t, len(data), size)
	require.Eventually(t, func() bool { return queued(t, coordinator) == 0 }, patience, time.Millisecond)
}

func TestResultGoesToAnyCoordinatorWhenItsOwnIsGone(t *testing.T) {
	coordinator, worker := start(t)
	r := &Result{Version: Version, Job: "e_1", Execution: "e"}
	_, err := worker.SendResult(t.Context(), "gone", r)
	require.ErrorIs(t, err, ErrNoCoordinator)

	stop, err := coordinator.ServeResults("c2", func(r *Result, _ int, reply func(Reply)) { reply(Reply{Verdict: VerdictOK}) })
	require.NoError(t, err)
	defer stop()
	for _, gone := range []string{"gone", "", "no token"} {
		reply, err := worker.SendResult(t.Context(), gone, r)
		require.NoError(t, err)
		require.Equal(t, VerdictOK, reply.Verdict)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = worker.SendResult(ctx, "c2", r)
	require.ErrorIs(t, err, context.Canceled)
}

func TestResultThatCannotBeRead(t *testing.T) {
	coordinator, worker := start(t)
	stop, err := coordinator.ServeResults("c1", func(*Result, int, func(Reply)) { t.Error("handler called") })
	require.NoError(t, err)
	defer stop()
	reply, err := ask[Reply](t.Context(), worker, subjectResult, []string{"not a result"})
	require.NoError(t, err)
	require.Equal(t, VerdictDrop, reply.Verdict)
	require.Contains(t, reply.Error, "cannot be read")
	_, err = coordinator.ServeResults("a.b", nil)
	require.ErrorContains(t, err, "coordinator id")
}

func TestAckOfSomethingElseIsRefused(t *testing.T) {
	coordinator, _ := start(t)
	for _, subject := range []string{
		"", "reprise.control", "$JS.API.STREAM.DELETE.REPRISE_JOBS", "$JS.ACK.OTHER.c.1.1.1.1.1", "$JS.ACK.>",
		"$JS.ACK.REPRISE_JOBS.c.1.1.1.1", "$JS.ACK.REPRISE_JOBS.*.1.1.1.1.1", "$JS.ACK.REPRISE_JOBS.c.x.1.1.1.1",
	} {
		require.Error(t, coordinator.Ack(subject), "%q", subject)
	}
	for _, subject := range []string{
		"$JS.ACK.REPRISE_JOBS.c.1.1.1.1700000000000000000.1", "$JS.ACK._.hash.REPRISE_JOBS.c.1.1.1.1.1.random", "$JS.ACK.hub.hash.REPRISE_JOBS.c.1.1.1.1.1",
	} {
		require.True(t, validAck(subject), "%q", subject)
	}
}

func TestLargePayloadsBothWays(t *testing.T) {
	coordinator, worker := start(t)
	require.EqualValues(t, 1<<20, worker.nc.MaxPayload(), "a server of default settings")
	text := strings.Repeat("(p)3 MB or more(p) ", 3<<20/19)
	quoted, err := json.Marshal(text)
	require.NoError(t, err)

	stop, err := coordinator.ServeResults("c1", func(r *Result, size int, reply func(Reply)) {
		require.Greater(t, size, 3<<20-100)
		if want := `{"text":` + string(quoted) + `}`; string(r.Result.Outputs[0][0].JSON) != want {
			t.Errorf("the result was changed on its way")
		}
		require.NoError(t, coordinator.Ack(r.Ack))
		reply(Reply{Verdict: VerdictOK})
	})
	require.NoError(t, err)
	defer stop()

	big := job(1)
	big.ToolArguments = json.RawMessage(`{"text":` + string(quoted) + `}`)
	publish(t, coordinator, big)
	require.Equal(t, []error{ErrQueued}, coordinator.PublishJobs(t.Context(), []*Job{big}))

	d := next(t, jobs(t, worker, WorkerConfig{Slots: 2}))
	if string(d.Job().ToolArguments) != string(big.ToolArguments) {
		t.Errorf("the job was changed on its way")
	}
	confirm(t, worker, result(d, text))
	require.Eventually(t, func() bool { return queued(t, coordinator) == 0 }, patience, time.Millisecond)
	require.Eventually(t, func() bool { return storedBlobs(t, coordinator) == 0 }, patience, 5*time.Millisecond,
		"payloads are deleted with what they belonged to")
}

// confirm sends a result until it is confirmed, as a worker does. On a slow
// machine the first request may be given up although it is handled, and then
// its payload is gone for the second.
func confirm(t *testing.T, worker *Conn, r *Result) {
	t.Helper()
	require.Eventually(t, func() bool {
		reply, err := worker.SendResult(t.Context(), "c1", r)
		require.NoError(t, err)
		return reply.Verdict == VerdictOK
	}, 2*patience, 10*time.Millisecond)
}

// storedBlobs counts the payloads whose data is in the object store.
func storedBlobs(t *testing.T, c *Conn) int {
	t.Helper()
	stream, err := c.js.Stream(t.Context(), "OBJ_"+BucketBlobs)
	require.NoError(t, err)
	info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter("$O."+BucketBlobs+".C.>"))
	require.NoError(t, err)
	return len(info.State.Subjects)
}

func TestJobWhosePayloadIsLostCanBePublishedAgain(t *testing.T) {
	coordinator, worker := start(t)
	coordinator.config.BlobThreshold = 200
	big := job(1)
	big.ToolArguments = json.RawMessage(`"` + strings.Repeat("x", 500) + `"`)
	publish(t, coordinator, big)
	store, err := coordinator.js.ObjectStore(t.Context(), BucketBlobs)
	require.NoError(t, err)
	list, err := store.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.NoError(t, coordinator.DeleteBlob(t.Context(), list[0].Name))

	j := jobs(t, worker, WorkerConfig{Slots: 1})
	require.Eventually(t, func() bool { return queued(t, coordinator) == 0 }, patience, time.Millisecond*5, "got no job: %v",
		func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			_, err := j.Next(ctx)
			return err
		}())
	publish(t, coordinator, big)
	require.Equal(t, big, next(t, j).Job())
}

func TestBlobs(t *testing.T) {
	c, _ := start(t)
	ctx := t.Context()
	data := []byte(strings.Repeat("payload", 300_000))
	digest, err := c.PutBlob(ctx, data)
	require.NoError(t, err)
	again, err := c.PutBlob(ctx, data)
	require.NoError(t, err)
	require.Equal(t, digest, again)
	require.EqualValues(t, 1, c.Stats().BlobsPut, "the second put stores nothing")
	got, err := c.GetBlob(ctx, digest)
	require.NoError(t, err)
	require.Equal(t, data, got)

	store, err := c.js.ObjectStore(ctx, BucketBlobs)
	require.NoError(t, err)
	_, err = store.PutBytes(ctx, digest, []byte("something else"))
	require.NoError(t, err)
	_, err = c.GetBlob(ctx, digest)
	require.ErrorIs(t, err, ErrBlobNotFound)
	require.ErrorContains(t, err, "damaged")
	_, err = c.GetBlob(ctx, digest)
	require.ErrorIs(t, err, ErrBlobNotFound)
	_, err = c.PutBlob(ctx, data)
	require.NoError(t, err)
	got, err = c.GetBlob(ctx, digest)
	require.NoError(t, err)
	require.Equal(t, data, got)

	require.NoError(t, c.DeleteBlob(ctx, digest))
	require.NoError(t, c.DeleteBlob(ctx, digest))
	_, err = c.GetBlob(ctx, "../../etc/passwd")
	require.ErrorIs(t, err, ErrBlobNotFound)
	c.config.MaxBlobBytes = 10
	_, err = c.PutBlob(ctx, data)
	require.ErrorIs(t, err, ErrTooLarge)

	require.NoError(t, c.js.DeleteObjectStore(ctx, BucketBlobs))
	c.config.MaxBlobBytes = defaultMaxBlobBytes
	_, err = c.PutBlob(ctx, data)
	require.NoError(t, err, "the store is created again")
}

func TestRedelivery(t *testing.T) {
	coordinator, worker := start(t)
	_, err := worker.AskRedelivery(t.Context(), &Redelivery{})
	require.ErrorIs(t, err, ErrNoCoordinator)
	stop, err := coordinator.ServeRedelivery(func(q *Redelivery, reply func(Reply)) {
		if q.Deliveries > 3 {
			go reply(Reply{Verdict: VerdictDrop})
			return
		}
		go reply(Reply{Verdict: VerdictRun})
	})
	require.NoError(t, err)
	defer stop()
	for deliveries, want := range map[int]string{2: VerdictRun, 4: VerdictDrop} {
		reply, err := worker.AskRedelivery(t.Context(), &Redelivery{Version: Version, Job: "e_1", Execution: "e", Deliveries: deliveries})
		require.NoError(t, err)
		require.Equal(t, want, reply.Verdict)
	}
}

func TestMemory(t *testing.T) {
	coordinator, worker := start(t)
	big := json.RawMessage(`"` + strings.Repeat("x", 2<<20) + `"`)
	stop, err := coordinator.ServeMemory(func(_ context.Context, session string, n int) ([]json.RawMessage, error) {
		switch {
		case session == "broken":
			return nil, errors.New("redis is away")
		case n == 1:
			return []json.RawMessage{json.RawMessage(`"last"`)}, nil
		}
		return []json.RawMessage{big, json.RawMessage(`"last"`)}, nil
	})
	require.NoError(t, err)
	defer stop()
	got, err := worker.LoadMemory(t.Context(), "s", 1)
	require.NoError(t, err)
	require.Equal(t, []json.RawMessage{json.RawMessage(`"last"`)}, got)
	got, err = worker.LoadMemory(t.Context(), "s", 0)
	require.NoError(t, err)
	require.Equal(t, []json.RawMessage{big, json.RawMessage(`"last"`)}, got)
	_, err = worker.LoadMemory(t.Context(), "broken", 0)
	require.ErrorContains(t, err, "redis is away")
}

func TestControlAndLive(t *testing.T) {
	coordinator, worker := start(t)
	dropped := make(chan Control, 10)
	stopControl, err := worker.SubscribeControl(func(m Control) { dropped <- m })
	require.NoError(t, err)
	defer stopControl()
	one, all := make(chan Live, 10), make(chan Live, 10)
	stopOne, err := worker.WatchLive("e1", func(l Live) { one <- l })
	require.NoError(t, err)
	defer stopOne()
	stopAll, err := worker.WatchLive("", func(l Live) { all <- l })
	require.NoError(t, err)
	require.NoError(t, worker.Flush(t.Context()))

	require.NoError(t, coordinator.PublishControl(Control{Drop: []engine.JobID{"e1_1", "e1_2"}}))
	require.Equal(t, Control{Drop: []engine.JobID{"e1_1", "e1_2"}}, <-dropped)
	require.NoError(t, coordinator.PublishControl(Control{Drop: make([]engine.JobID, maxDrop+1)}))
	require.Len(t, (<-dropped).Drop, maxDrop)
	require.Len(t, (<-dropped).Drop, 1)

	notices := []engine.Live{{Kind: engine.LiveNodeStarted, Node: "A", Stack: []string{"B"}}, {Kind: engine.LiveNodeFinished, Node: "A"}}
	require.NoError(t, coordinator.PublishLive("e2", notices))
	require.NoError(t, coordinator.PublishLive("e1", notices))
	require.NoError(t, coordinator.PublishLive("e1", nil))
	require.Error(t, coordinator.PublishLive("e.1", notices))
	require.Equal(t, Live{Execution: "e1", Live: notices[0]}, <-one)
	require.Equal(t, Live{Execution: "e1", Live: notices[1]}, <-one)
	for _, id := range []engine.ExecutionID{"e2", "e2", "e1", "e1"} {
		require.Equal(t, id, (<-all).Execution)
	}
	stopAll()
	require.NoError(t, coordinator.PublishLive("e1", notices))
	<-one
	<-one
	require.Empty(t, all)
}

func TestDurableSubmission(t *testing.T) {
	coordinator, client := start(t)
	ctx := t.Context()
	require.ErrorContains(t, client.SubmitDurable(ctx, &Submission{}), "needs an id")
	require.ErrorContains(t, client.SubmitDurable(ctx, &Submission{ID: "a b"}), "execution id")

	big := json.RawMessage(`{"text":"` + strings.Repeat("x", 2<<20) + `"}`)
	small := &Submission{ID: "small", Workflow: json.RawMessage(`{"nodes":[]}`)}
	for range 3 {
		require.NoError(t, client.SubmitDurable(ctx, small), "with the same id it is stored once")
	}
	require.NoError(t, client.SubmitDurable(ctx, &Submission{ID: "big", Input: workflow.Items{{JSON: big}}}))
	require.NoError(t, client.SubmitDurable(ctx, &Submission{ID: "bad"}))

	got := make(chan *SubmitMsg, 10)
	stop, err := coordinator.ConsumeSubmissions(ctx, func(m *SubmitMsg) { got <- m })
	require.NoError(t, err)
	byID := map[engine.ExecutionID]*SubmitMsg{}
	for range 3 {
		m := <-got
		byID[m.Submission.ID] = m
	}
	require.JSONEq(t, string(small.Workflow), string(byID["small"].Submission.Workflow))
	require.Equal(t, Version, byID["small"].Submission.Version)
	require.Equal(t, big, byID["big"].Submission.Input[0].JSON)
	byID["big"].Ack()
	byID["bad"].Term(&Problem{Code: CodeBadRequest, Message: "no workflow"})
	byID["small"].Nak(10 * time.Millisecond)
	again := <-got
	require.EqualValues(t, "small", again.Submission.ID)
	again.Ack()

	var letters []StoredDeadLetter
	require.Eventually(t, func() bool {
		letters, err = coordinator.DeadLetters(ctx, "", 0)
		return err == nil && len(letters) == 1
	}, patience, 5*time.Millisecond)
	require.EqualValues(t, "bad", letters[0].Execution)
	require.Equal(t, "no workflow", letters[0].Error)
	require.JSONEq(t, `{"v":1,"id":"bad"}`, string(letters[0].Submission))
	stream, err := coordinator.js.Stream(ctx, StreamSubmit)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := stream.Info(ctx)
		return err == nil && info.State.Msgs == 0
	}, patience, 5*time.Millisecond)
	stop()
	require.Empty(t, got)
}

func TestDeadLetters(t *testing.T) {
	c, _ := start(t)
	for i, id := range []engine.ExecutionID{"a", "b", "a", "c"} {
		require.NoError(t, c.PublishDead(t.Context(), &DeadLetter{Execution: id, Node: "N", Deliveries: i, Error: "lost"}))
	}
	all, err := c.DeadLetters(t.Context(), "", 3)
	require.NoError(t, err)
	require.Len(t, all, 3)
	require.EqualValues(t, "c", all[0].Execution, "newest first")
	require.EqualValues(t, "b", all[2].Execution)
	require.NoError(t, c.DeleteDead(t.Context(), all[1].Sequence))
	require.NoError(t, c.DeleteDead(t.Context(), all[1].Sequence))
	ofA, err := c.DeadLetters(t.Context(), "a", 0)
	require.NoError(t, err)
	require.Len(t, ofA, 1)
	require.Equal(t, DeadLetter{Version: Version, Execution: "a", Node: "N", Error: "lost"}, ofA[0].DeadLetter)
}

func TestHandlerIsCalledForOneResultAtATime(t *testing.T) {
	coordinator, worker := start(t)
	coordinator.config.BlobThreshold, worker.config.BlobThreshold = 300, 300
	var inside, calls atomic.Int32
	stop, err := coordinator.ServeResults("c1", func(_ *Result, _ int, reply func(Reply)) {
		if inside.Add(1) != 1 {
			t.Error("two results at once")
		}
		calls.Add(1)
		inside.Add(-1)
		reply(Reply{Verdict: VerdictOK})
	})
	require.NoError(t, err)
	defer stop()
	done := make(chan error)
	const total = 30
	for i := range total {
		go func() {
			to := []string{"c1", "gone"}[i%2]
			text := strings.Repeat("x", 1000*(i%3)) + strconv.Itoa(i)
			_, err := worker.SendResult(t.Context(), to, &Result{Job: "e_1", Ack: text})
			done <- err
		}()
	}
	for range total {
		require.NoError(t, <-done)
	}
	require.EqualValues(t, total, calls.Load())
}
