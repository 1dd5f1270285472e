package state

import "context"

// CountQuestions is the number of open questions to people. It asks every shard, in one round
// trip: for monitoring, not for every event.
func (s *Store) CountQuestions(ctx context.Context) (int, error) {
	pipe := s.client.Pipeline()
	counts := make([]interface{ Val() int64 }, len(s.keys))
	for n := range s.keys {
		counts[n] = pipe.ZCard(ctx, s.keys[n].questions)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, wrap(err, "count questions")
	}
	var all int64
	for _, c := range counts {
		all += c.Val()
	}
	return int(all), nil
}
