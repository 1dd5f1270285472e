package state

import (
	"context"
	"fmt"
)

// Asked is an open question to a person. What is asked is in the execution, under
// the token; this is only the index of what is open.
type Asked struct {
	Token string // of the wait, "<execution>_<n>"
	At    int64  // when it was asked, in ms
}

// Questions returns open questions of all executions, those asked first first:
// up to limit, default 50, at most 1000. next is the cursor of the following page,
// empty at the end. A page costs one round trip, sometimes two, however many
// questions are open (more only where thousands were asked in one millisecond). What is asked or answered between two pages moves no
// other question from one page to another. Errors: ErrFilter for a cursor that was not given out.
func (s *Store) Questions(ctx context.Context, limit int, cursor string) (asked []Asked, next string, err error) {
	limit = pageLimit(limit)
	from, err := parseCursor(cursor)
	if err != nil {
		return nil, "", fmt.Errorf("list questions: %w", err)
	}
	keys := make([]string, Shards)
	for n := range s.keys {
		keys[n] = s.keys[n].questions
	}
	// One more than asked for tells whether there is another page.
	found, err := newMerge(s.client, keys, oldestFirst, from, limit).take(ctx, limit+1)
	if err != nil {
		return nil, "", wrap(err, "list questions")
	}
	if len(found) > limit {
		found = found[:limit]
		next = found[limit-1].String()
	}
	asked = make([]Asked, len(found))
	for i, p := range found {
		asked[i] = Asked{Token: p.name, At: p.at}
	}
	return asked, next, nil
}
