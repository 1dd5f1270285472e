package coordinator

import (
	"context"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// response tells what an execution has for the caller that began it. It is read from the
// stored state: any coordinator can say it, also after the one that ran the execution is gone.
func (c *Coordinator) response(ctx context.Context, r *queue.ResponseRequest) (*queue.ResponseAnswer, error) {
	if r.Brief {
		s, err := c.lookOpen(ctx, r.ID)
		if err != nil {
			return nil, err
		}
		if !s.Meta.Status.Finished() {
			return &queue.ResponseAnswer{Status: s.Meta.Status, Waiting: c.waitsOf(s)}, nil
		}
	}
	s, err := c.look(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	answer := &queue.ResponseAnswer{Status: s.Meta.Status, Response: firstResponse(s)}
	if s.Meta.Status.Finished() {
		if answer.Outputs, answer.Error = s.Outcome(); !r.Outputs {
			answer.Outputs = nil
		}
		return answer, nil
	}
	answer.Waiting = c.waitsOf(s)
	return answer, nil
}

// waitsOf lists what an execution waits for.
func (c *Coordinator) waitsOf(s *engine.State) []queue.Waiting {
	var waits []queue.Waiting
	for _, p := range s.ParkedInOrder() {
		w := queue.Waiting{
			Token: p.Token, Node: p.Entry.Node, Kind: p.Wait.Kind, Since: p.Since, Until: p.Wait.Until, URL: c.waitURL(s, p),
		}
		if p.Wait.Webhook != nil {
			w.Form = p.Wait.Webhook.Form
		}
		waits = append(waits, w)
	}
	return waits
}

// firstResponse is the one of the run that began first.
func firstResponse(s *engine.State) *engine.WebhookResponse {
	var found *engine.WebhookResponse
	first := 0
	for _, runs := range s.Run {
		for _, record := range runs {
			if record == nil || record.Metadata == nil || record.Metadata.Response == nil {
				continue
			}
			if found == nil || record.ExecutionIndex < first {
				found, first = record.Metadata.Response, record.ExecutionIndex
			}
		}
	}
	return found
}
