package simulation

import (
	"context"
	"strconv"
	"time"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/state"
)

// What the dispatcher and the gates ask of the store.

func (s storeOf) OpenJobs(ctx context.Context, jobs []state.JobRef) ([]bool, error) {
	return reach(ctx, s, "open jobs", string(jobs[0].Job), func() ([]bool, error) { return s.p.w.store.OpenJobs(ctx, jobs) })
}

func (s storeOf) Postpone(ctx context.Context, ids []engine.ExecutionID, next int64) error {
	return s.do(ctx, "postpone", "", func() error { return s.p.w.store.Postpone(ctx, ids, next) })
}

func (s storeOf) CountByStatus(ctx context.Context) (map[engine.Status]int64, error) {
	return reach(ctx, s, "count", "", func() (map[engine.Status]int64, error) { return s.p.w.store.CountByStatus(ctx) })
}

func (s storeOf) Reserve(ctx context.Context, wanted []state.Reservation) ([]time.Duration, error) {
	return reach(ctx, s, "reserve", wanted[0].Holder, func() ([]time.Duration, error) { return s.p.w.store.Reserve(ctx, wanted) })
}

func (s storeOf) Gate(ctx context.Context, calls []state.GateCall) []state.GateAnswer {
	key := strconv.Itoa(int(calls[0].Op)) + " " + calls[0].Gate + " " + string(calls[0].Execution) + " +" + strconv.Itoa(len(calls)-1)
	answers, err := reach(ctx, s, "gate", key, func() ([]state.GateAnswer, error) { return s.p.w.store.Gate(ctx, calls), nil })
	if err != nil {
		answers = make([]state.GateAnswer, len(calls))
		for i := range answers {
			answers[i].Err = err
		}
	}
	return answers
}

func (s storeOf) Gates(ctx context.Context) ([]state.Gate, error) {
	return reach(ctx, s, "gates", "", func() ([]state.Gate, error) { return s.p.w.store.Gates(ctx) })
}

func (s storeOf) GatePosition(ctx context.Context, gate string, id engine.ExecutionID) (int, error) {
	return reach(ctx, s, "gate position", string(id), func() (int, error) { return s.p.w.store.GatePosition(ctx, gate, id) })
}

func (s storeOf) Line(ctx context.Context, parent engine.ExecutionID) ([]engine.ExecutionID, error) {
	return reach(ctx, s, "line", string(parent), func() ([]engine.ExecutionID, error) { return s.p.w.store.Line(ctx, parent) })
}

func (s storeOf) Turn(ctx context.Context, name string, interval int64) (bool, error) {
	return reach(ctx, s, "turn", name, func() (bool, error) { return s.p.w.store.Turn(ctx, name, interval) })
}

func (s storeOf) Stuck(ctx context.Context, before int64) ([]state.StuckExecution, error) {
	return reach(ctx, s, "stuck", "", func() ([]state.StuckExecution, error) { return s.p.w.store.Stuck(ctx, before) })
}
