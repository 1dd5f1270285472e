package state

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-engine/reprise/pkg/table"
)

// The rows of a table are searched and changed here and not in a script, which would hold up all
// executions meanwhile. A store keeps the tables that it used last in memory, asks for what has
// changed since, and commits what it makes of that, unless the table has another version by then, as
// with executions. The last 256 changes are listed in Redis; a store that knows an older version reads
// all rows.

// readTableScript reads what a store does not know of a table. Each version has a mark, drawn when it was
// written: a Redis that comes back without its last writes has other versions of the same numbers.
//
//	KEYS  1 head   2 rows   3 log   4 done   ARGV  1 the version that is known   2 its mark
//	reply done or false, gone (1 or 0), version, mark, last, whole (1 or 0: the rows are all there are),
//	      id, row (false: deleted), id, …
var readTableScript = newScript(`
local head = redis.call('HMGET', KEYS[1], 'version', 'mark', 'last', 'gone')
local out = {redis.call('GET', KEYS[4]), head[4] and 1 or 0, head[1] or '0', head[2] or '', head[3] or '0', 0}
if out[4] == ARGV[2] then return out end
local behind = tonumber(out[3]) - tonumber(ARGV[1])
if behind > 0 and ARGV[2] ~= '' then
  local log = redis.call('LRANGE', KEYS[3], 0, behind)
  if #log == behind + 1 and string.match(log[#log], '^%w+') == ARGV[2] then
    local ids, seen, all = {}, {}, false
    for i = 1, behind do
      local changed = string.match(log[i], ':(.*)')
      all = all or changed == '*'
      for id in string.gmatch(changed, '%d+') do
        if not seen[id] then
          seen[id] = true
          ids[#ids + 1] = id
        end
      end
    end
    if not all then
      for i = 1, #ids, 1000 do
        local rows = redis.call('HMGET', KEYS[2], unpack(ids, i, math.min(i + 999, #ids)))
        for j, row in ipairs(rows) do
          out[#out + 1] = ids[i + j - 1]
          out[#out + 1] = row
        end
      end
      return out
    end
  end
end
out[6] = 1
local rows = redis.call('HGETALL', KEYS[2])
for i = 1, #rows do out[6 + i] = rows[i] end
return out
`)

// writeTableScript changes a table unless somebody else did.
//
//	KEYS  1 head   2 rows   3 log   4 done
//	ARGV  1 mark of the version it is based on   2 the new version   3 its mark   4 id of the newest row
//	      5 what is kept as done   6 for how long (ms)   7 ids of the changed rows, "*" for many
//	      8 number of rows to write   9- id, row, … then the ids of rows to delete
//	reply 1 changed, 0 it has another version, -1 it was dropped
var writeTableScript = newScript(`
local head = redis.call('HMGET', KEYS[1], 'mark', 'gone')
if head[2] then return -1 end
if (head[1] or '') ~= ARGV[1] then return 0 end
local last = 8 + 2 * tonumber(ARGV[8])
for i = 9, last, 1000 do redis.call('HSET', KEYS[2], unpack(ARGV, i, math.min(i + 999, last))) end
for i = last + 1, #ARGV, 1000 do redis.call('HDEL', KEYS[2], unpack(ARGV, i, math.min(i + 999, #ARGV))) end
redis.call('HSET', KEYS[1], 'version', ARGV[2], 'mark', ARGV[3], 'last', ARGV[4])
redis.call('LPUSH', KEYS[3], ARGV[3] .. ':' .. ARGV[7])
redis.call('LTRIM', KEYS[3], 0, 256)
redis.call('SET', KEYS[4], ARGV[5], 'PX', ARGV[6])
return 1
`)

// goneTableScript removes a table's rows, and keeps for a day that it is gone: who still writes to it
// is told.
//
//	KEYS  1 head   2 rows   3 log
var goneTableScript = newScript(`
redis.call('UNLINK', KEYS[2], KEYS[3])
redis.call('HSET', KEYS[1], 'gone', 1)
redis.call('PEXPIRE', KEYS[1], 86400000)
return 1
`)

// nameTableScript changes which tables there are, unless somebody else did.
//
//	KEYS  1 tables by id   2 ids by name   3 done
//	ARGV  1 id   2 the record as it was read, "" for none   3 the new one, "" to remove it   4 its name before
//	      5 its name now   6 how long done is kept (ms)   7 greatest number of tables
//	reply "1" and the record, now or when it was done before; "0" and the record of another one that has the
//	      name; "+" for too many; "~" when somebody else changed it
var nameTableScript = newScript(`
local was = redis.call('GET', KEYS[3])
if was then return '1' .. was end
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then return '~' end
local other = ARGV[5] ~= '' and redis.call('HGET', KEYS[2], ARGV[5])
if other and other ~= ARGV[1] then return '0' .. redis.call('HGET', KEYS[1], other) end
if ARGV[2] == '' and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[7]) then return '+' end
if ARGV[4] ~= '' then redis.call('HDEL', KEYS[2], ARGV[4]) end
local text = ARGV[3]
if text == '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
  text = ARGV[2]
else
  redis.call('HSET', KEYS[1], ARGV[1], text)
  redis.call('HSET', KEYS[2], ARGV[5], ARGV[1])
end
redis.call('SET', KEYS[3], text, 'PX', ARGV[6])
return '1' .. text
`)

// ApplyTable fulfils a request to the data tables. A *table.Error says why it cannot be; then, and
// with any other error of the request as a whole, nothing was changed or it is not known, and the
// request may be repeated with its key.
func (s *Store) ApplyTable(ctx context.Context, r *table.Request) (*table.Answer, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	switch r.Do {
	case table.List:
		tables, err := s.tables(ctx)
		return &table.Answer{Tables: tables}, err
	case table.Create:
		return s.createTable(ctx, r)
	case table.Rename, table.Drop:
		return s.changeTable(ctx, r)
	}
	return s.applyRows(ctx, r)
}

// tables are all tables by name.
func (s *Store) tables(ctx context.Context) ([]table.Table, error) {
	texts, err := s.client.HVals(ctx, s.tableListKey()).Result()
	if err != nil {
		return nil, wrap(err, "list data tables")
	}
	tables := make([]table.Table, len(texts))
	for i, text := range texts {
		if err := json.Unmarshal([]byte(text), &tables[i]); err != nil {
			return nil, fmt.Errorf("list data tables: %w", err)
		}
	}
	slices.SortFunc(tables, func(a, b table.Table) int { return strings.Compare(a.Name, b.Name) })
	return tables, nil
}

// tableID is the id of the table that a request creates: the same for its repetitions.
func tableID(r *table.Request) string {
	sum := sha256.Sum256([]byte(r.Key + "\n" + r.Name))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10]))
}

func (s *Store) createTable(ctx context.Context, r *table.Request) (*table.Answer, error) {
	columns := r.Columns
	if columns == nil {
		columns = []table.Column{}
	}
	t := &table.Table{ID: tableID(r), Name: r.Name, Columns: columns, CreatedAt: r.At, UpdatedAt: r.At}
	answer, err := s.nameTable(ctx, r, t.ID, "", t, "")
	if !errors.Is(err, ErrConflict) {
		return answer, err
	}
	// The request created it so long ago that nothing else is known of it.
	if t, err = s.table(ctx, t.ID); t == nil {
		return nil, err
	}
	return &table.Answer{Table: t}, nil
}

func (s *Store) changeTable(ctx context.Context, r *table.Request) (*table.Answer, error) {
	// Who repeats the request may find another table under the name, or none.
	was, err := s.client.Get(ctx, s.tableNamedKey(r.Key)).Result()
	switch {
	case err == nil:
		return tableAnswer(was)
	case !errNil(err):
		return nil, wrap(err, "change a data table")
	}
	for range swapTries {
		id, err := s.tableID(ctx, r.Table)
		if err != nil {
			return nil, err
		}
		text, err := s.client.HGet(ctx, s.tableListKey(), id).Result()
		if errNil(err) {
			return nil, table.Missing(r.Table)
		}
		if err != nil {
			return nil, wrap(err, "change data table %s", id)
		}
		t := new(table.Table)
		if err := json.Unmarshal([]byte(text), t); err != nil {
			return nil, fmt.Errorf("data table %s: %w", id, err)
		}
		before := t.Name
		if r.Do == table.Rename {
			t.Name, t.UpdatedAt = r.Name, r.At
		} else {
			// Its rows first: a table whose rows cannot be reached can be dropped again.
			k := s.tableKeys(id, "")
			call := goneTableScript.call(ctx, k[:3], nil)
			if s.run(ctx, []*redis.Cmd{call}); call.Err() != nil {
				return nil, wrap(call.Err(), "drop data table %s", id)
			}
			t = nil
		}
		answer, err := s.nameTable(ctx, r, id, text, t, before)
		if !errors.Is(err, ErrConflict) {
			return answer, err
		}
	}
	return nil, fmt.Errorf("data table %q: it is changed by others all the time: %w", r.Table, ErrConflict)
}

// nameTable stores the record t in place of another one, nil to remove it.
func (s *Store) nameTable(ctx context.Context, r *table.Request, id, old string, t *table.Table, before string) (*table.Answer, error) {
	var text []byte
	name := ""
	if t != nil {
		name = t.Name
		var err error
		if text, err = json.Marshal(t); err != nil {
			return nil, err
		}
	}
	call := nameTableScript.call(ctx, []string{s.tableListKey(), s.tableNamesKey(), s.tableNamedKey(r.Key)},
		[]any{id, old, text, before, name, s.config.Retention.Milliseconds(), table.MaxTables})
	s.run(ctx, []*redis.Cmd{call})
	reply, err := call.Text()
	if err != nil {
		return nil, wrap(err, "%s a data table", r.Do)
	}
	switch reply[0] {
	case '1':
		return tableAnswer(reply[1:])
	case '0':
		if r.Do == table.Create && r.Reuse {
			return tableAnswer(reply[1:])
		}
		return nil, table.Taken(name)
	case '+':
		return nil, table.TooMany()
	}
	return nil, ErrConflict
}

func tableAnswer(text string) (*table.Answer, error) {
	t := new(table.Table)
	if err := json.Unmarshal([]byte(text), t); err != nil {
		return nil, fmt.Errorf("a data table: %w", err)
	}
	return &table.Answer{Table: t}, nil
}

// tableID finds the id of a table.
func (s *Store) tableID(ctx context.Context, r table.Ref) (string, error) {
	if r.Name == "" {
		return r.ID, nil
	}
	if r.ID != "" {
		found, err := s.client.HExists(ctx, s.tableListKey(), r.ID).Result()
		if err != nil || found {
			return r.ID, wrap(err, "look for data table %q", r.ID)
		}
	}
	id, err := s.client.HGet(ctx, s.tableNamesKey(), r.Name).Result()
	if errNil(err) {
		return "", table.Missing(r)
	}
	return id, wrap(err, "look for data table %q", r.Name)
}

// knownTable is what a store knows of a table. Whoever holds its lock may change it.
type knownTable struct {
	lock chan struct{}
	data *table.Data // nil: nothing
	mark string      // of its version
	used uint64
}

// knownTables are the tables that a store has in memory. The zero value has none.
type knownTables struct {
	mu    sync.Mutex
	byID  map[string]*knownTable
	clock uint64
}

// maxKnownBytes bounds the rows in memory, as they are stored; in memory they take some times as much.
const maxKnownBytes = 64 << 20

// take waits for a table, to be given back.
func (k *knownTables) take(ctx context.Context, id string) (*knownTable, error) {
	k.mu.Lock()
	if k.byID == nil {
		k.byID = map[string]*knownTable{}
	}
	known := k.byID[id]
	if known == nil {
		known = &knownTable{lock: make(chan struct{}, 1)}
		k.byID[id] = known
	}
	k.clock++
	known.used = k.clock
	k.mu.Unlock()
	select {
	case known.lock <- struct{}{}:
		return known, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// giveBack lets go of a table, and forgets others while there is too much of them.
func (k *knownTables) giveBack(id string, known *knownTable) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if known.data == nil {
		delete(k.byID, id) // who waits for it has it, and the next one another
	}
	<-known.lock
	for {
		var oldest *knownTable
		total, name := int64(0), ""
		for other, t := range k.byID {
			select {
			case t.lock <- struct{}{}:
				if t.data != nil {
					total += t.data.Bytes
				}
				if oldest == nil || t.used < oldest.used {
					oldest, name = t, other
				}
				<-t.lock
			default: // in use
			}
		}
		if total <= maxKnownBytes {
			return
		}
		delete(k.byID, name)
	}
}

// applyRows fulfils a request to the rows of a table.
func (s *Store) applyRows(ctx context.Context, r *table.Request) (*table.Answer, error) {
	id, err := s.tableID(ctx, r.Table)
	if err != nil {
		return nil, err
	}
	known, err := s.known.take(ctx, id)
	if err != nil {
		return nil, err
	}
	free := sync.OnceFunc(func() { s.known.giveBack(id, known) })
	defer free()
	for range swapTries {
		if known.data == nil {
			t, err := s.table(ctx, id)
			if err != nil {
				return nil, err
			}
			if t == nil {
				return nil, table.Missing(r.Table)
			}
			known.data, known.mark = &table.Data{Table: t}, ""
		}
		done, err := s.readTable(ctx, known, r.Key)
		if errors.Is(err, ErrNotFound) {
			known.data = nil
			return nil, table.Missing(r.Table)
		}
		if errors.Is(err, ErrConflict) {
			known.data = nil
			continue
		}
		if err != nil {
			return nil, err
		}
		if !r.Writes() {
			data := known.data
			free() // a version does not change: others go on meanwhile
			outcome, err := data.Apply(r, nil, s.config.TableLimits)
			if err != nil {
				return nil, err
			}
			return outcome.Answer, nil
		}
		outcome, err := known.data.Apply(r, done, s.config.TableLimits)
		if err != nil {
			return nil, err
		}
		if outcome.Done == nil {
			return outcome.Answer, nil
		}
		mark := rand.Text()
		switch err := s.writeTable(ctx, known, outcome, mark, r.Key); {
		case err == nil:
			known.data, known.mark = outcome.Data, mark
			return outcome.Answer, nil
		case errors.Is(err, ErrNotFound):
			known.data = nil
			return nil, table.Missing(r.Table)
		case !errors.Is(err, ErrConflict):
			known.data = nil // it may have been written
			return nil, err
		}
	}
	return nil, fmt.Errorf("data table %s: it is changed by others all the time: %w", id, ErrConflict)
}

// table reads what a table is; nil is none.
func (s *Store) table(ctx context.Context, id string) (*table.Table, error) {
	text, err := s.client.HGet(ctx, s.tableListKey(), id).Result()
	if errNil(err) {
		return nil, nil
	}
	if err != nil {
		return nil, wrap(err, "load data table %s", id)
	}
	t := new(table.Table)
	if err := json.Unmarshal([]byte(text), t); err != nil {
		return nil, fmt.Errorf("data table %s: %w", id, err)
	}
	return t, nil
}

// readTable learns what was changed, and what was done under a key. ErrNotFound is a table that was
// dropped, ErrConflict one that is older than what is known of it: its Redis lost something.
func (s *Store) readTable(ctx context.Context, known *knownTable, key string) (done []byte, err error) {
	t := known.data.Table
	call := readTableScript.call(ctx, s.tableKeys(t.ID, key), []any{known.data.Version, known.mark})
	s.run(ctx, []*redis.Cmd{call})
	reply, err := call.Slice()
	if err != nil {
		return nil, wrap(err, "read data table %s", t.ID)
	}
	if text, ok := reply[0].(string); ok {
		done = []byte(text)
	}
	if reply[1] == int64(1) {
		return nil, ErrNotFound
	}
	version, last := replyNumber(reply[2]), replyNumber(reply[4])
	mark, _ := reply[3].(string)
	if mark == known.mark {
		return done, nil
	}
	if version < known.data.Version {
		return nil, ErrConflict
	}
	base := known.data
	if reply[5] == int64(1) {
		base = &table.Data{Table: t}
	}
	changes := make(map[int64]*table.Row, len(reply)/2)
	for i := 6; i+1 < len(reply); i += 2 {
		id := replyNumber(reply[i])
		changes[id] = nil
		if text, ok := reply[i+1].(string); ok {
			if changes[id], err = table.DecodeRow(t, id, text); err != nil {
				return nil, err
			}
		}
	}
	known.data, known.mark = base.With(changes, version, last), mark
	return done, nil
}

func replyNumber(v any) int64 {
	text, _ := v.(string)
	n, _ := strconv.ParseInt(text, 10, 64) // only we write them
	return n
}

// maxLogged is the greatest number of rows that an entry of a table's log lists; "*" is more.
const maxLogged = 1000

// writeTable stores an outcome: ErrConflict when the table is not as it was known, ErrNotFound when
// it was dropped.
func (s *Store) writeTable(ctx context.Context, base *knownTable, o *table.Outcome, mark, key string) error {
	var written, deleted []any
	var entry []byte
	for id, row := range o.Changes {
		if row == nil {
			deleted = append(deleted, id)
		} else {
			written = append(written, id, row.Encode())
		}
		entry = append(strconv.AppendInt(entry, id, 10), ' ')
	}
	if len(o.Changes) > maxLogged {
		entry = []byte("*")
	}
	id := base.data.Table.ID
	args := append([]any{base.mark, o.Data.Version, mark, o.Data.Last, o.Done, s.config.Retention.Milliseconds(), entry, len(written) / 2}, written...)
	call := writeTableScript.call(ctx, s.tableKeys(id, key), append(args, deleted...))
	s.run(ctx, []*redis.Cmd{call})
	switch n, err := call.Int(); {
	case err != nil:
		return wrap(err, "write data table %s", id)
	case n == 0:
		return ErrConflict
	case n < 0:
		return ErrNotFound
	}
	return nil
}
