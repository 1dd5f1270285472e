package queue

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Messages of this version with fields that it does not know are read without them.
func TestUnknownFieldsAreReadPast(t *testing.T) {
	for _, m := range []any{
		&Job{}, &Plan{}, &Result{}, &Redelivery{}, &Submission{}, &Reply{}, &MemoryQuery{}, &DeadLetter{}, &Control{}, &Live{},
		&ResumeRequest{}, &DecideRequest{}, &RetryRequest{}, &WorkflowPutRequest{}, &Problem{},
	} {
		plain, err := encode(m)
		require.NoError(t, err)
		more := []byte(strings.Replace(string(plain), "{", `{"addedLater":{"a":[1,{"b":null}]},`, 1))
		if string(plain) == "{}" {
			more = []byte(`{"addedLater":{"a":[1]}}`)
		}
		for name, read := range map[string]func([]byte, any) error{"decode": decode, "encoding/json": json.Unmarshal} {
			got := reflect.New(reflect.TypeOf(m).Elem()).Interface()
			require.NoError(t, read(more, got), "%T with %s", m, name)
			again, err := encode(got)
			require.NoError(t, err)
			require.JSONEq(t, string(plain), string(again), "%T with %s", m, name)
		}
	}
}

// another is a message of a later version, in which no field has the type of today.
const another = `{"v":99,"id":{"text":"x"},"job":[1],"execution":{"id":"e1"},"workflow":7,"deliveries":"many","session":{},"result":"text"}`

// What only a newer coordinator can read is refused in a way that its sender repeats.
func TestNewerResultsAndQuestionsAreNotDropped(t *testing.T) {
	coordinator, worker := start(t)
	stop, err := coordinator.ServeResults("c1", func(*Result, int, func(Reply)) { t.Error("a newer result was handled") })
	require.NoError(t, err)
	defer stop()
	stop, err = coordinator.ServeRedelivery(func(*Redelivery, func(Reply)) { t.Error("a newer question was handled") })
	require.NoError(t, err)
	defer stop()
	for _, subject := range []string{subjectResult, subjectResult + ".c1", subjectRedelivery} {
		answer, err := worker.nc.Request(subject, []byte(another), patience)
		require.NoError(t, err)
		var reply Reply
		require.NoError(t, json.Unmarshal(answer.Data, &reply))
		require.Equal(t, VerdictError, reply.Verdict, subject)
		require.Contains(t, reply.Error, "version 99")
	}
}

// A durable submission of a newer version goes back to its stream; older coordinators neither
// take it nor make it a dead letter.
func TestNewerSubmissionsAreKept(t *testing.T) {
	coordinator, client := start(t)
	_, err := client.js.Publish(t.Context(), subjectSubmission, []byte(another))
	require.NoError(t, err)
	got := make(chan *SubmitMsg, 10)
	stop, err := coordinator.ConsumeSubmissions(t.Context(), func(m *SubmitMsg) { got <- m })
	require.NoError(t, err)
	require.NoError(t, client.SubmitDurable(t.Context(), &Submission{ID: "known"}))
	m := <-got
	require.EqualValues(t, "known", m.Submission.ID)
	m.Ack()
	stream, err := coordinator.js.Stream(t.Context(), StreamSubmit)
	require.NoError(t, err)
	kept := func() uint64 {
		info, err := stream.Info(t.Context())
		require.NoError(t, err)
		return info.State.Msgs
	}
	require.Eventually(t, func() bool { return kept() == 1 }, patience, patience/1000)
	stop()
	require.Empty(t, got)
	require.EqualValues(t, 1, kept())
	letters, err := coordinator.DeadLetters(t.Context(), "", 0)
	require.NoError(t, err)
	require.Empty(t, letters)
}
