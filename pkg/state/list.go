package state

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// Filter chooses what List returns. The zero Filter is everything.
type Filter struct {
	// Status keeps executions of these statuses; none is all.
	Status []engine.Status
	// Workflow keeps executions of the workflow with this id or name.
	Workflow string
	// Limit is the greatest number returned, default 50, at most 1000.
	Limit int
	// Cursor continues where an earlier call ended.
	Cursor string
}

// Summary is an execution in a list.
type Summary struct {
	ID           engine.ExecutionID
	Status       engine.Status
	WorkflowID   string
	WorkflowName string
	StartedAt    int64 // ms
	StoppedAt    int64 // ms, 0 while it is unfinished
	Version      uint64
	engine.Origin
}

const (
	defaultListLimit = 50
	maxListLimit     = 1000
	// listScan bounds how many executions one List looks at to find those of a workflow.
	listScan = 10_000
)

// List returns executions, those started last first. next is the Cursor of the
// following page, empty at the end. A page may be shorter than Limit, even empty, although
// there is a next one: when few executions are of the Workflow asked for, and when some expired.
func (s *Store) List(ctx context.Context, f Filter) (page []Summary, next string, err error) {
	limit := pageLimit(f.Limit)
	wanted := f.Status
	if len(wanted) == 0 {
		wanted = statuses
	}
	for _, st := range wanted {
		if !slices.Contains(statuses, st) {
			return nil, "", fmt.Errorf("list executions: %w: unknown status %q", ErrFilter, st)
		}
	}
	from, err := parseCursor(f.Cursor)
	if err == nil && from != nil && checkID(engine.ExecutionID(from.name)) != nil {
		err = cursorError(f.Cursor)
	}
	if err != nil {
		return nil, "", fmt.Errorf("list executions: %w", err)
	}
	keys := make([]string, 0, Shards*len(wanted))
	for n := range s.keys {
		for _, st := range wanted {
			keys = append(keys, s.keys[n].index[st])
		}
	}
	m := newMerge(s.client, keys, newestFirst, from, limit)
	for scanned := 0; scanned < listScan; {
		group, err := m.take(ctx, min(limit, listScan-scanned))
		if err != nil {
			return nil, "", wrap(err, "list executions")
		}
		if len(group) == 0 {
			return page, "", nil
		}
		scanned += len(group)
		found, err := s.summaries(ctx, group)
		if err != nil {
			return nil, "", wrap(err, "list executions")
		}
		for i, sum := range found {
			next = group[i].String()
			if sum == nil || f.Workflow != "" && f.Workflow != sum.WorkflowID && f.Workflow != sum.WorkflowName ||
				!slices.Contains(wanted, sum.Status) { // it moved on since its index was read
				continue
			}
			if page = append(page, *sum); len(page) == limit {
				return page, next, nil
			}
		}
	}
	return page, next, nil
}

// pageLimit is the length of a page.
func pageLimit(asked int) int {
	if asked <= 0 {
		return defaultListLimit
	}
	return min(asked, maxListLimit)
}

// summaries reads what a list shows of each execution, nil for those that are gone.
func (s *Store) summaries(ctx context.Context, at []position) ([]*Summary, error) {
	pipe := s.client.Pipeline()
	cmds := make([]*redis.SliceCmd, len(at))
	for i, p := range at {
		id := engine.ExecutionID(p.name)
		cmds[i] = pipe.HMGet(ctx, s.shard(id).table(id, engine.TableMeta),
			fieldVersion, fieldStatus, fieldWorkflowID, fieldWorkflowName, fieldStarted, fieldStopped, engine.OriginField)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	out := make([]*Summary, len(at))
	for i, c := range cmds {
		v := c.Val()
		text := func(n int) string { t, _ := v[n].(string); return t }
		number := func(n int) int64 { i, _ := strconv.ParseInt(text(n), 10, 64); return i }
		if text(0) == "" {
			continue
		}
		// A list is for looking: an execution of which this cannot be read is shown all the same.
		origin, _ := engine.ReadOrigin([]byte(text(6)))
		out[i] = &Summary{
			ID: engine.ExecutionID(at[i].name), Version: uint64(number(0)), Status: engine.Status(text(1)),
			WorkflowID: text(2), WorkflowName: text(3), StartedAt: number(4), StoppedAt: number(5), Origin: origin,
		}
	}
	return out, nil
}
