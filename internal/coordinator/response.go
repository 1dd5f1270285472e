package coordinator

import (
	"context"
	"slices"

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
			answer := &queue.ResponseAnswer{Status: s.Meta.Status}
			c.addWaits(answer, s, r.Link)
			return answer, nil
		}
	}
	s, err := c.look(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	answer := &queue.ResponseAnswer{Status: s.Meta.Status, Response: firstResponse(s, r.From)}
	if s.Meta.Status.Finished() {
		if answer.Outputs, answer.Error = s.Outcome(); !r.Outputs {
			answer.Outputs = nil
		}
		return answer, nil
	}
	c.addWaits(answer, s, r.Link)
	return answer, nil
}

// addWaits tells what an execution waits for, as far as the link, if there is one, leads to it.
func (c *Coordinator) addWaits(answer *queue.ResponseAnswer, s *engine.State, link *int) {
	waits := s.ParkedInOrder()
	if link != nil {
		waits = slices.DeleteFunc(waits, func(p *engine.Parked) bool {
			return p.Wait.Webhook == nil || !p.Wait.Webhook.Linked || !linkFits(p, link)
		})
		answer.Over = len(waits) == 0 && *link <= s.Meta.LastWebhook
	}
	answer.Waiting = c.toldWaits(s, waits)
}

// waitsOf lists what an execution waits for.
func (c *Coordinator) waitsOf(s *engine.State) []queue.Waiting {
	return c.toldWaits(s, s.ParkedInOrder())
}

func (c *Coordinator) toldWaits(s *engine.State, parked []*engine.Parked) []queue.Waiting {
	var waits []queue.Waiting
	for _, p := range parked {
		w := queue.Waiting{
			Token: p.Token, Node: p.Entry.Node, Kind: p.Wait.Kind, Since: p.Since, Until: p.Wait.Until, URL: c.waitURL(s, p),
		}
		if p.Wait.Webhook != nil {
			w.Form, w.Callers = p.Wait.Webhook.Form, p.Wait.Webhook.Callers
		}
		waits = append(waits, w)
	}
	return waits
}

// firstResponse is the one of the run that began first of those whose execution index is
// not lower than from.
func firstResponse(s *engine.State, from int) *engine.WebhookResponse {
	var found *engine.WebhookResponse
	first := 0
	for _, runs := range s.Run {
		for _, record := range runs {
			if record == nil || record.Metadata == nil || record.Metadata.Response == nil || record.ExecutionIndex < from {
				continue
			}
			if found == nil || record.ExecutionIndex < first {
				found, first = record.Metadata.Response, record.ExecutionIndex
			}
		}
	}
	return found
}
