package state

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/redis/go-redis/v9"
)

// appendScript adds messages to a memory unless its id was seen.
//
//	KEYS  1 messages   2 ids   ARGV  1 id   2 greatest number of messages (and ids)   3 expiry in ms, 0 for none
//	      4- the messages
//	reply 1 appended, 0 seen before
//
// The ids are numbered by their order, so that the oldest can be cut.
var appendScript = newScript(`
if redis.call('ZSCORE', KEYS[2], ARGV[1]) then return 0 end
local last = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2]
for i = 4, #ARGV, 1000 do redis.call('RPUSH', KEYS[1], unpack(ARGV, i, math.min(i + 999, #ARGV))) end
redis.call('LTRIM', KEYS[1], -tonumber(ARGV[2]), -1)
redis.call('ZADD', KEYS[2], (tonumber(last) or 0) + 1, ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[2], 0, -tonumber(ARGV[2]) - 1)
if ARGV[3] ~= '0' then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
end
return 1
`)

// AppendMemory adds messages to a chat's memory. id names the append
// (execution, node, run, item): a repeat changes nothing, as long as it is among the last
// Config.MemoryLimit appends. Only the last MemoryLimit messages are kept.
func (s *Store) AppendMemory(ctx context.Context, session, id string, messages []json.RawMessage) error {
	if session == "" || id == "" {
		return errors.New("append to memory: session and id must not be empty")
	}
	if len(messages) == 0 {
		return nil
	}
	list, ids := s.memoryKeys(session)
	args := make([]any, 0, 3+len(messages))
	args = append(args, id, s.config.MemoryLimit, s.config.MemoryExpiry.Milliseconds())
	for _, m := range messages {
		args = append(args, []byte(m))
	}
	call := appendScript.call(ctx, []string{list, ids}, args)
	s.run(ctx, []*redis.Cmd{call})
	return wrap(call.Err(), "append to memory")
}

// Memory returns the last n messages of a chat, oldest first; n <= 0 all.
// A session that does not exist has none.
func (s *Store) Memory(ctx context.Context, session string, n int) ([]json.RawMessage, error) {
	list, _ := s.memoryKeys(session)
	from := int64(0)
	if n > 0 {
		from = -int64(n)
	}
	texts, err := s.client.LRange(ctx, list, from, -1).Result()
	if err != nil {
		return nil, wrap(err, "read memory")
	}
	messages := make([]json.RawMessage, len(texts))
	for i, t := range texts {
		messages[i] = json.RawMessage(t)
	}
	return messages, nil
}

// ClearMemory forgets a chat.
func (s *Store) ClearMemory(ctx context.Context, session string) error {
	list, ids := s.memoryKeys(session)
	return wrap(s.client.Unlink(ctx, list, ids).Err(), "clear memory")
}
