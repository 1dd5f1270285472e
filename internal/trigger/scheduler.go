package trigger

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// scheduler submits the executions of schedules.
type scheduler struct {
	host *Host

	mu        sync.Mutex
	schedules []*schedule
	done      map[string]int64 // by schedule: the latest moment (ms) that was submitted
	changed   chan struct{}
}

func (c *scheduler) init(h *Host) {
	c.host, c.done, c.changed = h, map[string]int64{}, make(chan struct{}, 1)
}

// set replaces the schedules.
func (c *scheduler) set(schedules []*schedule) {
	c.mu.Lock()
	c.schedules = schedules
	keep := map[string]int64{}
	for _, s := range schedules {
		if at, ok := c.done[s.key()]; ok {
			keep[s.key()] = at
		}
	}
	c.done = keep
	c.mu.Unlock()
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// key tells schedules apart; one that is changed is another.
func (s *schedule) key() string {
	return s.id + "\x00" + s.node.Name + "\x00" + strconv.Itoa(s.rule) + "\x00" + strconv.FormatInt(s.changedAt, 10)
}

// slotID is the id of the execution of a moment, the same in every process.
func (s *schedule) slotID(at time.Time) engine.ExecutionID {
	return engine.ExecutionID("slot-" + digest(s.id, s.node.Name, strconv.FormatInt(at.UnixMilli(), 10)))
}

// maxSleep is how long the clock is not looked at: it may have been set.
const maxSleep = time.Minute

// run submits what is due until ctx ends.
func (c *scheduler) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.changed:
		case <-timer.C:
		}
		timer.Reset(c.turn(ctx))
	}
}

// turn submits the moments that have come and returns how long until the next.
func (c *scheduler) turn(ctx context.Context) time.Duration {
	c.mu.Lock()
	schedules := c.schedules
	c.mu.Unlock()
	now := c.host.Now()
	sleep := maxSleep
	for _, s := range schedules {
		at := c.due(s, now)
		if !at.IsZero() {
			begin := c.submit
			if s.poll {
				begin = c.poll
			}
			if err := begin(ctx, s, at); err != nil {
				c.host.log.Warn("scheduled execution was not submitted; it is tried again", zap.String("workflow_id", s.id),
					zap.String("node", s.node.Name), zap.Time("slot", at), zap.Error(err))
				sleep = min(sleep, time.Second)
				continue
			}
			c.mu.Lock()
			if _, ok := c.done[s.key()]; ok || c.holds(s) {
				c.done[s.key()] = at.UnixMilli()
			}
			c.mu.Unlock()
		}
		if next := s.next(c.host.Now().In(s.zone)); !next.IsZero() {
			sleep = min(sleep, max(time.Millisecond, next.Sub(c.host.Now())))
		}
	}
	return sleep
}

// holds reports whether a schedule is still one of those that are set. The lock is held.
func (c *scheduler) holds(s *schedule) bool {
	for _, other := range c.schedules {
		if other.key() == s.key() {
			return true
		}
	}
	return false
}

// due is the latest moment that has come and was not submitted from here; zero for none. It is
// never one before the schedule was made, nor older than the window for what was missed.
func (c *scheduler) due(s *schedule, now time.Time) time.Time {
	from := now.Add(-c.host.MissedWindow).UnixMilli()
	c.mu.Lock()
	from = max(from, s.changedAt, c.done[s.key()])
	c.mu.Unlock()
	return s.latest(time.UnixMilli(from).In(s.zone), now.In(s.zone))
}

// submit stores the execution of a moment, if no other process did.
func (c *scheduler) submit(ctx context.Context, s *schedule, at time.Time) error {
	return c.begin(ctx, s, s.slotID(at), workflow.Items{{JSON: s.item(at)}})
}

func (c *scheduler) begin(ctx context.Context, s *schedule, id engine.ExecutionID, input workflow.Items) error {
	_, err := c.host.Backend.Submit(ctx, &queue.Submission{
		ID: id, WorkflowID: s.id, WorkflowHash: s.hash, Start: s.node.Name, Mode: "trigger", Input: input,
	})
	var problem *queue.Problem
	if errors.As(err, &problem) && problem.Code != queue.CodeUnavailable && problem.Code != queue.CodeFull && problem.Code != queue.CodeOverloaded {
		// It would be refused again: this moment is lost, the next may not be.
		c.host.log.Error("scheduled execution is refused", zap.String("workflow_id", s.id), zap.String("node", s.node.Name), zap.Error(err))
		return nil
	}
	return err
}

// item is what a Schedule Trigger gives out.
func (s *schedule) item(at time.Time) json.RawMessage {
	at = at.In(s.zone)
	name := s.zone.String()
	return toJSON(struct {
		Timestamp string `json:"timestamp"`
		Date      string `json:"Readable date"`
		Time      string `json:"Readable time"`
		Weekday   string `json:"Day of week"`
		Year      string `json:"Year"`
		Month     string `json:"Month"`
		Day       string `json:"Day of month"`
		Hour      string `json:"Hour"`
		Minute    string `json:"Minute"`
		Second    string `json:"Second"`
		Timezone  string `json:"Timezone"`
	}{
		at.Format("2006-01-02T15:04:05.000-07:00"), at.Format("January 2") + ordinal(at.Day()) + at.Format(" 2006, 3:04:05 pm"), at.Format("3:04:05 pm"),
		at.Format("Monday"), at.Format("2006"), at.Format("January"), at.Format("02"), at.Format("15"), at.Format("04"), at.Format("05"),
		name + " (UTC" + at.Format("-07:00") + ")",
	})
}

// ordinal is the ending of a day's number.
func ordinal(day int) string {
	if day/10 != 1 {
		switch day % 10 {
		case 1:
			return "st"
		case 2:
			return "nd"
		case 3:
			return "rd"
		}
	}
	return "th"
}
