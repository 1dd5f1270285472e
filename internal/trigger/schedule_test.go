package trigger

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

func scheduleDocument(t *testing.T, kind, zone, parameters string) *workflow.Workflow {
	t.Helper()
	w, err := workflow.Parse([]byte(`{"id":"w","nodes":[{"name":"Clock","type":"n8n-nodes-base.` + kind + `","typeVersion":1,"parameters":` + parameters +
		`}],"connections":{},"settings":{"timezone":"` + zone + `"}}`))
	require.NoError(t, err)
	return w
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return moment
}

// The next moments after Wednesday the 15th of January 2025, 10:07:03 UTC, when the workflow
// was activated.
func TestMoments(t *testing.T) {
	start := at(t, "2025-01-15T10:07:03Z")
	for name, test := range map[string]struct {
		kind, zone, parameters string
		want                   []string
	}{
		"nothing said":  {"scheduleTrigger", "UTC", `{}`, []string{"2025-01-16T00:00:00Z", "2025-01-17T00:00:00Z"}},
		"seconds":       {"scheduleTrigger", "UTC", `{"rule":{"interval":[{"field":"seconds","secondsInterval":20}]}}`, []string{"2025-01-15T10:07:20Z", "2025-01-15T10:07:40Z", "2025-01-15T10:08:00Z"}},
		"minutes":       {"scheduleTrigger", "UTC", `{"rule":{"interval":[{"field":"minutes","minutesInterval":15}]}}`, []string{"2025-01-15T10:15:00Z", "2025-01-15T10:30:00Z"}},
		"90 minutes":    {"scheduleTrigger", "UTC", `{"rule":{"interval":[{"field":"minutes","minutesInterval":90}]}}`, []string{"2025-01-15T10:30:00Z", "2025-01-15T12:00:00Z"}},
		"hours":         {"scheduleTrigger", "UTC", `{"rule":{"interval":[{"field":"hours","hoursInterval":5,"triggerAtMinute":20}]}}`, []string{"2025-01-15T10:20:00Z", "2025-01-15T15:20:00Z", "2025-01-15T20:20:00Z", "2025-01-16T01:20:00Z"}},
		"days":          {"scheduleTrigger", "Europe/Berlin", `{"rule":{"interval":[{"daysInterval":2,"triggerAtHour":9,"triggerAtMinute":30}]}}`, []string{"2025-01-16T08:30:00Z", "2025-01-18T08:30:00Z"}},
		"weeks":         {"scheduleTrigger", "UTC", `{"rule":{"interval":[{"field":"weeks","triggerAtDay":[1,5],"triggerAtHour":6}]}}`, []string{"2025-01-17T06:00:00Z", "2025-01-20T06:00:00Z", "2025-01-24T06:00:00Z"}},
		"Sunday as 7":   {"scheduleTrigger", "UTC", `{"rule":{"interval":[{"field":"weeks","triggerAtDay":[7]}]}}`, []string{"2025-01-19T00:00:00Z"}},
		"months":        {"scheduleTrigger", "UTC", `{"rule":{"interval":[{"field":"months","monthsInterval":3,"triggerAtDayOfMonth":2,"triggerAtHour":1}]}}`, []string{"2025-02-02T01:00:00Z", "2025-05-02T01:00:00Z"}},
		"cron":          {"scheduleTrigger", "America/New_York", `{"rule":{"interval":[{"field":"cronExpression","expression":"0 9 * * 1-5"}]}}`, []string{"2025-01-15T14:00:00Z", "2025-01-16T14:00:00Z", "2025-01-17T14:00:00Z", "2025-01-20T14:00:00Z"}},
		"six fields":    {"scheduleTrigger", "UTC", `{"rule":{"interval":[{"field":"cronExpression","expression":"30 8 10 * * *"}]}}`, []string{"2025-01-15T10:08:30Z"}},
		"old cron":      {"cron", "UTC", `{"triggerTimes":{"item":[{"mode":"everyDay","hour":11}]}}`, []string{"2025-01-15T11:00:00Z"}},
		"old every x":   {"cron", "UTC", `{"triggerTimes":{"item":[{"mode":"everyX","value":2,"unit":"hours"}]}}`, []string{"2025-01-15T11:00:00Z", "2025-01-15T13:00:00Z"}},
		"old custom":    {"cron", "UTC", `{"triggerTimes":{"item":[{"mode":"custom","cronExpression":"0 0 12 * * *"}]}}`, []string{"2025-01-15T12:00:00Z"}},
		"old interval":  {"interval", "UTC", `{"interval":10,"unit":"minutes"}`, []string{"2025-01-15T10:10:00Z", "2025-01-15T10:20:00Z"}},
		"summer begins": {"scheduleTrigger", "Europe/Berlin", `{"rule":{"interval":[{"field":"cronExpression","expression":"30 12 29-31 3 *"}]}}`, []string{"2025-03-29T11:30:00Z", "2025-03-30T10:30:00Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &source{id: "w", activatedAt: start.UnixMilli(), changedAt: start.UnixMilli(), workflow: scheduleDocument(t, test.kind, test.zone, test.parameters)}
			all, err := schedulesOf(t.Context(), nil, s)
			require.NoError(t, err)
			require.Len(t, all, 1)
			moment := start.In(all[0].zone)
			for _, want := range test.want {
				moment = all[0].next(moment)
				require.Equal(t, want, moment.UTC().Format(time.RFC3339))
			}
		})
	}
}

// fakes are a store with one workflow, and coordinators that remember what was submitted.
type fakes struct {
	record    state.WorkflowRecord
	document  []byte
	submitted []*queue.Submission
	err       error
	slots     map[string]state.Slot
	stored    map[engine.ExecutionID]bool // and whether it is over
}

func (f *fakes) WorkflowsRevision(context.Context) (int64, error) { return 1, nil }
func (f *fakes) NamedWorkflows(context.Context) ([]state.WorkflowRecord, error) {
	return []state.WorkflowRecord{f.record}, nil
}
func (f *fakes) Workflow(context.Context, string) ([]byte, error) { return f.document, nil }
func (f *fakes) TakeSlot(_ context.Context, trigger string, change func(state.Slot) (state.Slot, bool, error)) (state.Slot, error) {
	next, take, err := change(f.slots[trigger])
	if take && err == nil {
		if f.slots == nil {
			f.slots = map[string]state.Slot{}
		}
		f.slots[trigger] = next
	}
	return next, err
}
func (f *fakes) Begun(_ context.Context, id engine.ExecutionID, _ string) (stored, over bool, err error) {
	over, stored = f.stored[id]
	return stored, over, nil
}
func (f *fakes) Memory(context.Context, string, int) ([]json.RawMessage, error) {
	return nil, errors.New("nothing is read")
}
func (f *fakes) Lease(context.Context, string, string, time.Duration, *string) (state.Lease, error) {
	return state.Lease{}, errors.New("nothing is read")
}
func (f *fakes) Release(context.Context, string, string) error { return nil }
func (f *fakes) Submit(_ context.Context, s *queue.Submission) (engine.ExecutionID, error) {
	if f.err == nil {
		f.submitted = append(f.submitted, s)
	}
	return s.ID, f.err
}
func (f *fakes) WaitResponse(context.Context, engine.ExecutionID, queue.Awaited) (*queue.ResponseAnswer, error) {
	return nil, errors.New("nobody waits")
}
func (f *fakes) Resume(context.Context, queue.ResumeRequest) (*queue.ResumeAnswer, error) {
	return nil, errors.New("nobody waits")
}

// TestMissedMoments: what passed while no process was there is made up for once, with the latest
// moment, if that is not too long ago and not before the schedule was made.
func TestMissedMoments(t *testing.T) {
	now := at(t, "2025-01-15T10:07:03Z")
	f := &fakes{document: scheduleDocument(t, "scheduleTrigger", "Asia/Tokyo", `{"rule":{"interval":[{"field":"minutes","minutesInterval":5}]}}`).Raw}
	f.record = state.WorkflowRecord{ID: "w", Hash: "h", Active: true, ActivatedAt: at(t, "2025-01-15T09:00:00Z").UnixMilli()}
	host := func(window time.Duration) *Host {
		h := New(Config{Backend: f, Store: f, Now: func() time.Time { return now }, MissedWindow: window})
		require.NoError(t, h.refresh(t.Context()))
		return h
	}
	h := host(30 * time.Minute)
	sleep := h.clock.turn(t.Context())
	require.Equal(t, maxSleep, sleep)
	require.Len(t, f.submitted, 1, "the latest of six")
	first := f.submitted[0]
	var item map[string]string
	require.NoError(t, json.Unmarshal(first.Input[0].JSON, &item))
	require.Equal(t, "2025-01-15T19:05:00.000+09:00", item["timestamp"])
	require.Equal(t, "January 15th 2025, 7:05:00 pm", item["Readable date"])
	require.Equal(t, "Wednesday", item["Day of week"])
	require.Equal(t, "Asia/Tokyo (UTC+09:00)", item["Timezone"])
	require.Equal(t, "trigger", first.Mode)

	h.clock.turn(t.Context())
	require.Len(t, f.submitted, 1, "once")
	host(30 * time.Minute).clock.turn(t.Context())
	require.Equal(t, first.ID, f.submitted[1].ID, "another process submits the same execution")

	now = at(t, "2025-01-15T10:10:00.500Z")
	f.err = &queue.Problem{Code: queue.CodeUnavailable, Message: "away"}
	require.LessOrEqual(t, h.clock.turn(t.Context()), time.Second, "it is tried again soon")
	f.err = nil
	h.clock.turn(t.Context())
	require.Len(t, f.submitted, 3)
	require.NotEqual(t, first.ID, f.submitted[2].ID)

	f.submitted = nil
	now = at(t, "2025-01-15T10:14:59Z")
	host(time.Minute).clock.turn(t.Context())
	require.Empty(t, f.submitted, "too long ago")
	f.record.ActivatedAt = at(t, "2025-01-15T10:12:00Z").UnixMilli()
	host(time.Hour).clock.turn(t.Context())
	require.Empty(t, f.submitted, "before it was activated")
	f.record.ActivatedAt, f.record.UpdatedAt = at(t, "2025-01-15T09:00:00Z").UnixMilli(), at(t, "2025-01-15T10:12:00Z").UnixMilli()
	host(time.Hour).clock.turn(t.Context())
	require.Empty(t, f.submitted, "before the schedule was as it is")
}

// Of two workflows that want the same calls the one that was activated first has them.
func TestClash(t *testing.T) {
	hookAt := func(id, path string, activated int64) *hook {
		w, err := workflow.Parse([]byte(`{"id":"` + id + `","nodes":[{"name":"Hook","type":"n8n-nodes-base.webhook","typeVersion":2,"parameters":{"path":"` + path + `"}}],"connections":{}}`))
		require.NoError(t, err)
		hooks, err := hooksOf(t.Context(), nil, &source{id: id, activatedAt: activated, workflow: w})
		require.NoError(t, err)
		return hooks[0]
	}
	table, clashes := newTable([]*hook{hookAt("late", "a/:x/c", 2), hookAt("early", "/a/:y/c/", 1), hookAt("fixed", "a/b/c", 3), hookAt("third", "a/b/:z", 4)})
	require.Len(t, clashes, 1)
	require.Contains(t, clashes[0], `"late"`)
	find := func(segments ...string) (string, map[string]string) {
		found, params, _ := table.find("GET", WebhookPath, segments)
		if found == nil {
			return "", nil
		}
		return found.id, params
	}
	id, params := find("a", "1/2", "c")
	require.Equal(t, "early", id)
	require.Equal(t, map[string]string{"y": "1/2"}, params)
	id, _ = find("a", "b", "c")
	require.Equal(t, "fixed", id, "a path without parameters goes first")
	id, _ = find("a", "b", "d")
	require.Equal(t, "third", id)
	id, _ = find("a", "", "c")
	require.Empty(t, id, "a parameter is not empty")
	id, _ = find("a", "b", "c", "d")
	require.Empty(t, id)
}
