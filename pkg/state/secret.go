package state

import (
	"context"
	"errors"
)

// Secret returns the value that is stored under a name, storing propose when
// there is none yet: all callers get the same one, whoever came first. It never
// expires. It is for keys that all processes share and nobody has to configure, such
// as the one that signs links; whoever can read this Redis can read it, as everything else.
func (s *Store) Secret(ctx context.Context, name string, propose []byte) ([]byte, error) {
	if name == "" || len(propose) == 0 {
		return nil, errors.New("read secret: name and proposed value must not be empty")
	}
	key := s.secretKey(name)
	// Reading comes first: it is all that is needed but for the first time, and it
	// works at maxmemory and on a replica.
	value, err := s.client.Get(ctx, key).Bytes()
	if errNil(err) {
		if err := s.client.SetNX(ctx, key, propose, 0).Err(); err != nil {
			return nil, wrap(err, "store secret %s", name)
		}
		value, err = s.client.Get(ctx, key).Bytes()
	}
	return value, wrap(err, "read secret %s", name)
}
