package http

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/poll"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// feedMark is what a poll of a feed leaves for the next.
type feedMark struct {
	// Floor is the date of the oldest entry that was in the feed: what is older is not new when it
	// comes up, as it does when a feed shows further ones because others were removed.
	Floor time.Time `json:"floor,omitzero"`
}

// pollFeed gives out the entries of a feed that were not there at an earlier poll. The first
// poll notes those that are there.
func (c Config) pollFeed(ctx context.Context, call *node.Call) (*node.Result, error) {
	// An error is the execution's and no entry: what goes on after it is the engine's business.
	strict, single := *call.Node, *call
	strict.OnError, strict.ContinueOnFail = workflow.OnErrorStop, false
	single.Node = &strict
	x := &execution{Config: c, call: &single, read: (*parameters).readPolledFeed}
	x.output = func(resp *response, o options, _ workflow.Item, index int) (workflow.Items, error) {
		return resp.feedItems(o, nil, index)
	}
	result, err := x.execute(ctx)
	if err != nil {
		return nil, err
	}
	entries := result.Outputs[0]
	for i := range entries {
		entries[i].PairedItem = nil // nothing was before
	}
	if poll.ByHand(call) {
		return node.Outputs(entries[:min(1, len(entries))]), nil
	}
	history, err := poll.Load(ctx, call)
	if err != nil {
		return nil, err
	}
	var before, mark feedMark
	if len(history.Mark) > 0 {
		if err := json.Unmarshal(history.Mark, &before); err != nil {
			return nil, err
		}
	}
	var items workflow.Items
	var found, seen []string
	taken := map[string]bool{}
	for _, entry := range entries {
		key, date := entryKey(entry.JSON), gjson.GetBytes(entry.JSON, "isoDate").Time()
		if !date.IsZero() && (mark.Floor.IsZero() || date.Before(mark.Floor)) {
			mark.Floor = date
		}
		switch {
		case taken[key]:
			continue
		case history.Again:
			if !history.Found(key) {
				continue
			}
		case history.First || !date.IsZero() && date.Before(before.Floor):
			seen = append(seen, key)
			continue
		case history.Known(key):
			continue
		}
		taken[key] = true
		items, found = append(items, entry), append(found, key)
	}
	if mark.Floor.Before(before.Floor) {
		mark.Floor = before.Floor
	}
	if len(found) == 0 && !history.First {
		return poll.Nothing(), nil
	}
	return history.Result(items, found, seen, mark)
}

// entryKey tells the entries of a feed apart.
func entryKey(entry json.RawMessage) string {
	for _, name := range []string{"guid", "id", "link"} {
		if value := gjson.GetBytes(entry, name); value.String() != "" {
			return name + " " + value.String()
		}
	}
	return string(entry)
}

// readPolledFeed evaluates the parameters of the RSS Feed Trigger.
func (p *parameters) readPolledFeed() *request { return p.feedAt("feedUrl") }
