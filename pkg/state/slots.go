package state

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// Slot is the last moment of a trigger that somebody took, for triggers of which one execution
// at a time may begin.
type Slot struct {
	Execution engine.ExecutionID `json:"execution"`
	Moment    int64              `json:"moment"` // ms
	TakenAt   int64              `json:"takenAt"`
}

// slotMemory is how long a slot is remembered.
const slotMemory = 7 * 24 * time.Hour

// swapSlotScript changes a slot unless somebody else did.
//
//	KEYS  1 slot   ARGV  1 the slot as it was read, "" for none   2 the new one   3 how long it is kept, in ms
//	reply 1 when it was changed, else 0
var swapSlotScript = newScript(`
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
`)

// TakeSlot changes the slot of a trigger. change gets what is stored, the zero value when there is
// none, and returns what is to be stored, or false to leave it; it is called again when somebody
// else changed the slot meanwhile. Its error is returned as it is. The slot that is stored at the end is returned.
func (s *Store) TakeSlot(ctx context.Context, trigger string, change func(Slot) (Slot, bool, error)) (Slot, error) {
	key := s.slotKey(trigger)
	for range swapTries {
		var slot Slot
		old, err := s.client.Get(ctx, key).Result()
		if err != nil && !errNil(err) {
			return slot, wrap(err, "read slot of trigger %s", trigger)
		}
		if old != "" {
			if err := json.Unmarshal([]byte(old), &slot); err != nil {
				return slot, fmt.Errorf("read slot of trigger %s: %w", trigger, err)
			}
		}
		next, take, err := change(slot)
		if err != nil || !take {
			return slot, err
		}
		text, err := json.Marshal(next)
		if err != nil {
			return slot, fmt.Errorf("take slot of trigger %s: %w", trigger, err)
		}
		call := swapSlotScript.call(ctx, []string{key}, []any{old, string(text), slotMemory.Milliseconds()})
		s.run(ctx, []*redis.Cmd{call})
		swapped, err := call.Int()
		if err != nil {
			return slot, wrap(err, "take slot of trigger %s", trigger)
		}
		if swapped == 1 {
			return next, nil
		}
	}
	return Slot{}, fmt.Errorf("take slot of trigger %s: it is changed by others all the time; try again", trigger)
}

// Begun tells how far an execution came whose first node is known: whether it is stored at all, and
// whether the first run of that node is over.
func (s *Store) Begun(ctx context.Context, id engine.ExecutionID, first string) (stored, over bool, err error) {
	if err := checkID(id); err != nil {
		return false, false, fmt.Errorf("look at execution: %w", err)
	}
	k := s.shard(id)
	pipe := s.client.Pipeline()
	status := pipe.HGet(ctx, k.table(id, engine.TableMeta), fieldStatus)
	record := pipe.HExists(ctx, k.table(id, engine.TableRun), engine.RunField(first, 0))
	if _, err := pipe.Exec(ctx); err != nil && !errNil(err) {
		return false, false, wrap(err, "look at execution %s", id)
	}
	text := status.Val()
	return text != "", engine.Status(text).Finished() || record.Val(), nil
}
