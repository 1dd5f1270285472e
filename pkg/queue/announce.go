package queue

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/engine"
)

const (
	// What a worker, or a coordinator, is doing: to all coordinators.
	subjectWorker      = "reprise.worker"
	subjectCoordinator = "reprise.coordinator"
	// Jobs that were committed away by another coordinator than the one that
	// published them: to all coordinators.
	subjectSettled = "reprise.settled"
)

// AnnounceEvery is how often workers and coordinators say what they do. Who has not been
// heard of for AnnounceGone is taken to be gone.
const (
	AnnounceEvery = 2 * time.Second
	AnnounceGone  = 3*AnnounceEvery + AnnounceEvery/2
)

// WorkerNotice is what a worker says of itself, on reprise.worker.
type WorkerNotice struct {
	Version int `json:"v"`
	// ID is drawn when the worker starts, Name is for people.
	ID   string `json:"id"`
	Name string `json:"name"`
	// Slots is how many jobs it runs at once; Pools how many of each pool.
	Slots int            `json:"slots"`
	Pools map[string]int `json:"pools"`
	// Busy is the number of jobs it holds, by pool.
	Busy map[string]int `json:"busy,omitempty"`
	// IdleSince is since when it holds none, in milliseconds since 1970; 0 while it does.
	IdleSince int64 `json:"idleSince,omitempty"`
	// Draining: it takes no more jobs. Gone: this is its last notice.
	Draining bool `json:"draining,omitempty"`
	Gone     bool `json:"gone,omitempty"`
}

// CoordinatorNotice is what a coordinator says of itself, on reprise.coordinator.
type CoordinatorNotice struct {
	Version int                   `json:"v"`
	ID      string                `json:"id"`
	Pools   map[string]PoolNotice `json:"pools,omitempty"`
	// Started and Finished count executions since the coordinator started; LagMillis is how
	// long ago the event came that its slowest lane handles.
	Started   uint64 `json:"started,omitempty"`
	Finished  uint64 `json:"finished,omitempty"`
	LagMillis int64  `json:"lagMs,omitempty"`
	// Gone: this is its last notice.
	Gone bool `json:"gone,omitempty"`
}

// PoolNotice are the jobs of a pool that a coordinator knows.
type PoolNotice struct {
	// Waiting are held back until there is room, Limited until their rate limit lets them go,
	// Published have been handed over and are not answered.
	Waiting   int `json:"waiting,omitempty"`
	Limited   int `json:"limited,omitempty"`
	Published int `json:"published,omitempty"`
	// Oldest is since when the oldest waiting or published one has been there, in
	// milliseconds since 1970; 0 is none.
	Oldest int64 `json:"oldest,omitempty"`
	// Old is how many have been there for more than 30 s.
	Old int `json:"old,omitempty"`
}

// AnnounceWorker tells coordinators about a worker. It does not wait.
func (c *Conn) AnnounceWorker(n WorkerNotice) error {
	n.Version = Version
	return c.announce(subjectWorker, n)
}

// AnnounceCoordinator tells the other coordinators about one. It does not wait.
func (c *Conn) AnnounceCoordinator(n CoordinatorNotice) error {
	n.Version = Version
	return c.announce(subjectCoordinator, n)
}

// settled is a message on reprise.settled.
type settled struct {
	Version int            `json:"v"`
	Jobs    []engine.JobID `json:"jobs"`
}

// AnnounceSettled tells the other coordinators that jobs are open no more. It does not
// wait, and it may be lost.
func (c *Conn) AnnounceSettled(jobs []engine.JobID) error {
	for len(jobs) > 0 {
		n := min(len(jobs), maxDrop)
		if err := c.announce(subjectSettled, settled{Version: Version, Jobs: jobs[:n]}); err != nil {
			return err
		}
		jobs = jobs[n:]
	}
	return nil
}

func (c *Conn) announce(subject string, notice any) error {
	data, err := encode(notice)
	if err != nil {
		return fmt.Errorf("encode notice on %s: %w", subject, err)
	}
	return classify(c.nc.Publish(subject, data))
}

// ServeNotices calls the handlers with what workers and coordinators say of themselves, and
// with jobs that are open no more, each for one at a time, until stop.
func (c *Conn) ServeNotices(worker func(WorkerNotice), coordinator func(CoordinatorNotice), gone func([]engine.JobID)) (stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, one := range stops {
			one()
		}
	}
	for subject, handle := range map[string]func(*nats.Msg){
		subjectWorker:      notices(c, worker),
		subjectCoordinator: notices(c, coordinator),
		subjectSettled:     notices(c, func(s settled) { gone(s.Jobs) }),
	} {
		end, err := c.subscribe(subject, "", handle)
		if err != nil {
			stop()
			return nil, err
		}
		stops = append(stops, end)
	}
	return stop, nil
}

func notices[T any](c *Conn, handle func(T)) func(*nats.Msg) {
	return func(m *nats.Msg) {
		var notice T
		if err := json.Unmarshal(m.Data, &notice); err != nil {
			c.log.Debug("notice cannot be read", zap.String("subject", m.Subject), zap.Error(err))
			return
		}
		handle(notice)
	}
}
