package queue

import (
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// LiveNotices is a message on reprise.live.<execution>: what one step of an
// execution did, in order. One message per step keeps watching cheap.
type LiveNotices struct {
	Version   int                `json:"v"`
	Execution engine.ExecutionID `json:"execution"`
	Notices   []engine.Live      `json:"notices"`
}

// PublishLive tells watchers what an execution did. It does not wait, and
// notices may be lost: those that do not fit into a message lose their stacks.
func (c *Conn) PublishLive(id engine.ExecutionID, notices []engine.Live) error {
	if len(notices) == 0 {
		return nil
	}
	if err := ValidToken("execution id", string(id)); err != nil {
		return err
	}
	data, err := encode(LiveNotices{Version: Version, Execution: id, Notices: notices})
	if err != nil {
		return fmt.Errorf("encode notices of execution %s: %w", id, err)
	}
	if len(data) > c.threshold() {
		short := make([]engine.Live, len(notices))
		for i, n := range notices {
			n.Stack = nil
			short[i] = n
		}
		if data, err = encode(LiveNotices{Version: Version, Execution: id, Notices: short}); err != nil {
			return err
		}
	}
	return classify(c.nc.Publish(subjectLive+string(id), data))
}

// WatchLive calls handler with the notices of one execution, or of all when id is
// empty, one after the other, until stop.
func (c *Conn) WatchLive(id engine.ExecutionID, handler func(Live)) (stop func(), err error) {
	subject := subjectLive + "*"
	if id != "" {
		if err := ValidToken("execution id", string(id)); err != nil {
			return nil, err
		}
		subject = subjectLive + string(id)
	}
	return c.subscribe(subject, "", func(m *nats.Msg) {
		var batch LiveNotices
		if err := decode(m.Data, &batch); err != nil {
			c.log.Debug("notice cannot be read", zap.String("subject", m.Subject), zap.Error(err))
			return
		}
		for _, n := range batch.Notices {
			handler(Live{Execution: batch.Execution, Live: n})
		}
	})
}

// maxDrop is the number of job ids in one control message: it stays far below
// what a message can hold.
const maxDrop = 1000

// PublishControl tells all workers something. It does not wait, and nobody
// confirms it.
func (c *Conn) PublishControl(control Control) error {
	for drop := control.Drop; ; {
		n := min(len(drop), maxDrop)
		data, err := encode(Control{Drop: drop[:n]})
		if err != nil {
			return fmt.Errorf("encode control message: %w", err)
		}
		if err := c.nc.Publish(subjectControl, data); err != nil {
			return classify(err)
		}
		if drop = drop[n:]; len(drop) == 0 {
			return nil
		}
	}
}

// SubscribeControl calls handler with the messages to all workers, until stop.
func (c *Conn) SubscribeControl(handler func(Control)) (stop func(), err error) {
	return c.subscribe(subjectControl, "", func(m *nats.Msg) {
		var control Control
		if err := json.Unmarshal(m.Data, &control); err != nil {
			c.log.Debug("control message cannot be read", zap.Error(err))
			return
		}
		handler(control)
	})
}
