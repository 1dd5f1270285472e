package state

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// Stored is an execution as it is in Redis.
type Stored struct {
	// Version to give to the next Commit.
	Version uint64
	Status  engine.Status
	// Tables as engine.Restore takes them; the caller owns them.
	Tables engine.Tables
}

// loadAttempts bounds how often an execution is read again because it was
// committed to in the middle of the reading.
const loadAttempts = 5

// Load reads whole executions in one round trip. The result has an entry per
// id in the same order, nil for one that is not there (never was, or expired).
// It costs as much as the executions are large: callers keep what they work on.
func (s *Store) Load(ctx context.Context, ids []engine.ExecutionID) ([]*Stored, error) {
	return s.load(ctx, ids, tables[:])
}

// LoadOpen is Load without the run data: what executions are, have before them and wait for. It is
// enough to say how they are, and not to go on with them.
func (s *Store) LoadOpen(ctx context.Context, ids []engine.ExecutionID) ([]*Stored, error) {
	return s.load(ctx, ids, openTables)
}

var openTables = []engine.Table{engine.TableMeta, engine.TableStack, engine.TableOpen}

// load reads these tables, of which the first is meta.
func (s *Store) load(ctx context.Context, ids []engine.ExecutionID, wanted []engine.Table) ([]*Stored, error) {
	out := make([]*Stored, len(ids))
	pending := make([]int, len(ids))
	for i := range ids {
		if err := checkID(ids[i]); err != nil {
			return nil, fmt.Errorf("load: %w", err)
		}
		pending[i] = i
	}
	for attempt := 0; len(pending) > 0; attempt++ {
		reads := make([]*reading, len(pending))
		pipe := s.client.Pipeline()
		for j, i := range pending {
			reads[j] = s.read(ctx, pipe, ids[i], wanted)
		}
		if attempt == loadAttempts {
			// Somebody commits to it all the time: read it in a transaction. That is
			// not done at first as it takes a round trip for each.
			return s.loadOneByOne(ctx, ids, wanted, pending, out)
		}
		if _, err := pipe.Exec(ctx); err != nil && !errNil(err) {
			return nil, wrap(err, "load %d executions", len(ids))
		}
		var torn []int
		for j, i := range pending {
			stored, whole, err := reads[j].result()
			if err != nil {
				return nil, wrap(err, "load execution %s", ids[i])
			}
			if !whole {
				torn = append(torn, i)
				continue
			}
			out[i] = stored
		}
		pending = torn
	}
	return out, nil
}

func (s *Store) loadOneByOne(ctx context.Context, ids []engine.ExecutionID, wanted []engine.Table, pending []int, out []*Stored) ([]*Stored, error) {
	for _, i := range pending {
		pipe := s.client.TxPipeline()
		r := s.read(ctx, pipe, ids[i], wanted)
		if _, err := pipe.Exec(ctx); err != nil && !errNil(err) {
			return nil, wrap(err, "load execution %s", ids[i])
		}
		stored, _, err := r.result()
		if err != nil {
			return nil, wrap(err, "load execution %s", ids[i])
		}
		out[i] = stored
	}
	return out, nil
}

// reading is the reading of one execution under way. Its commands are not
// atomic in a pipeline, so the version is read first (with meta) and last.
type reading struct {
	wanted  []engine.Table
	tables  []*redis.MapStringStringCmd
	version *redis.StringCmd
}

func (s *Store) read(ctx context.Context, pipe redis.Pipeliner, id engine.ExecutionID, wanted []engine.Table) *reading {
	r, k := &reading{wanted: wanted}, s.shard(id)
	for _, t := range wanted {
		r.tables = append(r.tables, pipe.HGetAll(ctx, k.table(id, t)))
	}
	r.version = pipe.HGet(ctx, k.table(id, engine.TableMeta), fieldVersion)
	return r
}

// result returns the execution, nil when there is none. whole is false when
// it was changed between the first command and the last.
func (r *reading) result() (stored *Stored, whole bool, err error) {
	for _, t := range r.tables {
		if err := t.Err(); err != nil {
			return nil, false, err
		}
	}
	last, err := r.version.Result()
	if err != nil && !errNil(err) {
		return nil, false, err
	}
	meta := r.tables[metaTable].Val()
	if meta[fieldVersion] != last {
		return nil, false, nil
	}
	if last == "" {
		return nil, true, nil
	}
	version, err := strconv.ParseUint(last, 10, 64)
	if err != nil {
		return nil, false, fmt.Errorf("version %q is not a number", last)
	}
	stored = &Stored{Version: version, Status: engine.Status(meta[fieldStatus]), Tables: engine.Tables{}}
	for i, t := range r.wanted {
		fields := r.tables[i].Val()
		table := make(map[string][]byte, len(fields))
		for field, value := range fields {
			if i == metaTable && field[0] == reserved {
				continue
			}
			table[field] = []byte(value)
		}
		stored.Tables[t] = table
	}
	return stored, true, nil
}
