package items

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// seenInEarlierExecutions keeps the items that are new to the workflow on
// output 0 and puts the others on output 1. Items are compared with earlier
// executions, not with each other.
func seenInEarlierExecutions(ctx context.Context, call *node.Call) (*node.Result, error) {
	logic, err := choice(ctx, call, 0, "logic", "removeItemsWithAlreadySeenKeyValues")
	if err != nil {
		return nil, err
	}
	if err := knownLogic(logic); err != nil {
		return nil, err
	}
	size, err := call.Int(ctx, 0, "options.historySize", defaultHistory)
	if err != nil {
		return nil, err
	}
	if size < 1 {
		return nil, node.OperationError(-1, "The history size "+strconv.Itoa(size)+" is too small", "Enter how many values to remember, at least 1.")
	}
	h, err := loadHistory(ctx, call)
	if err != nil {
		return nil, err
	}
	h.limit(size)
	var kept, discarded workflow.Items
	var n note
	for i, item := range passAll(call) {
		var isNew bool
		var err error
		switch logic {
		case "removeItemsUpToStoredIncrementalKey":
			isNew, err = h.isHigher(ctx, call, i, &n)
		case "removeItemsUpToStoredDate":
			isNew, err = h.isLater(ctx, call, i, &n)
		default:
			isNew, err = h.isUnknown(ctx, call, i, &n)
		}
		if err != nil {
			return nil, err
		}
		if isNew {
			kept = append(kept, item)
		} else {
			discarded = append(discarded, item)
		}
	}
	if over := len(n.Hashes) - size; over > 0 {
		n.Hashes = n.Hashes[over:]
	}
	result := node.Outputs(kept, discarded)
	fresh := len(n.Hashes)
	if len(h.hashes)+fresh > size {
		hint(result, "The history holds its "+strconv.Itoa(size)+" values, so the oldest are forgotten. Choose a larger 'History Size' if their items may come again.")
	}
	result.Memory, err = h.append(n, size)
	return result, err
}

// knownLogic checks what items are kept by.
func knownLogic(logic string) error {
	switch logic {
	case "removeItemsWithAlreadySeenKeyValues", "removeItemsUpToStoredIncrementalKey", "removeItemsUpToStoredDate":
		return nil
	}
	return node.OperationError(-1, "The value '"+logic+"' of 'Keep Items Where' is unknown",
		"Choose removeItemsWithAlreadySeenKeyValues, removeItemsUpToStoredIncrementalKey or removeItemsUpToStoredDate.")
}

// dedupeValue reads what an item is known by.
func dedupeValue(ctx context.Context, call *node.Call, item int, path string) (gjson.Result, error) {
	found, err := value(ctx, call, item, path)
	if err != nil {
		return found, err
	}
	if found.Type == gjson.Null || found.Type == gjson.String && strings.TrimSpace(found.Str) == "" {
		return found, node.OperationError(item, "The value to dedupe on is empty",
			"Enter an expression that gives a value for every item in 'Value to Dedupe On', for example {{ $json.id }}.")
	}
	return found, nil
}

func (h *history) isUnknown(ctx context.Context, call *node.Call, item int, n *note) (bool, error) {
	found, err := dedupeValue(ctx, call, item, "dedupeValue")
	if err != nil {
		return false, err
	}
	key := text(found.Raw)
	if found.Type == gjson.JSON {
		key = canonical(found.Raw)
	}
	hash := hashOf(key)
	if h.known[hash] {
		return false, nil
	}
	if !h.fresh[hash] {
		h.fresh[hash] = true
		n.Hashes = append(n.Hashes, hash)
	}
	return true, nil
}

func (h *history) isHigher(ctx context.Context, call *node.Call, item int, n *note) (bool, error) {
	found, err := dedupeValue(ctx, call, item, "incrementalDedupeValue")
	if err != nil {
		return false, err
	}
	number, ok := toNumber(found)
	if !ok || found.Type != gjson.Number && found.Type != gjson.String {
		return false, node.OperationError(item, "The value '"+text(found.Raw)+"' is not a number",
			"'Value Is Higher than Any Previous Value' needs a number for every item.")
	}
	if h.number != nil && number <= *h.number {
		return false, nil
	}
	if n.Number == nil || number > *n.Number {
		n.Number = &number
	}
	return true, nil
}

// dateLayouts are the forms of ISO 8601 that are read; without an offset a date
// is in UTC.
var dateLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04Z07:00", "2006-01-02T15:04",
	"2006-01-02 15:04:05.999999999", "2006-01-02 15:04", "2006-01-02T15:04:05.999999999-0700", "2006-01-02"}

func (h *history) isLater(ctx context.Context, call *node.Call, item int, n *note) (bool, error) {
	found, err := dedupeValue(ctx, call, item, "dateDedupeValue")
	if err != nil {
		return false, err
	}
	date, ok := time.Time{}, false
	for _, layout := range dateLayouts {
		if parsed, err := time.Parse(layout, strings.TrimSpace(found.String())); err == nil && found.Type == gjson.String {
			date, ok = parsed.UTC(), true
			break
		}
	}
	if !ok {
		return false, node.OperationError(item, "The value '"+text(found.Raw)+"' is not a valid date",
			"'Value Is a Date Later than Any Previous Date' needs a date in ISO format for every item.")
	}
	if h.date != nil && !date.After(*h.date) {
		return false, nil
	}
	if n.Date == nil || date.After(*n.Date) {
		n.Date = &date
	}
	return true, nil
}

// clearHistory forgets what earlier executions saw and passes the items on.
func clearHistory(ctx context.Context, call *node.Call) (*node.Result, error) {
	mode, err := choice(ctx, call, 0, "mode", "cleanDatabase")
	if err != nil {
		return nil, err
	}
	if mode != "cleanDatabase" {
		return nil, node.OperationError(-1, "The value '"+mode+"' of 'Mode' is unknown", "Choose cleanDatabase.")
	}
	session, err := sessionOf(ctx, call)
	if err != nil {
		return nil, err
	}
	result := node.Outputs(passAll(call))
	result.Memory, err = (&history{session: session}).append(note{Clear: true}, 0)
	return result, err
}
