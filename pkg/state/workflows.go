package state

import (
	"context"
	"errors"
	"fmt"
)

// PutWorkflow stores a workflow document under the hash of its content. It is
// written once; a repeat changes nothing. It never expires (see the package comment).
func (s *Store) PutWorkflow(ctx context.Context, hash string, document []byte) error {
	if hash == "" {
		return errors.New("store workflow: no hash")
	}
	return wrap(s.client.SetNX(ctx, s.workflowKey(hash), document, 0).Err(), "store workflow %s", hash)
}

// Workflow returns the stored document, or ErrNotFound.
func (s *Store) Workflow(ctx context.Context, hash string) ([]byte, error) {
	document, err := s.client.Get(ctx, s.workflowKey(hash)).Bytes()
	if errNil(err) {
		return nil, fmt.Errorf("workflow %s: %w", hash, ErrNotFound)
	}
	if err != nil {
		return nil, wrap(err, "load workflow %s", hash)
	}
	return document, nil
}

// DeleteWorkflow removes a document. Only the caller can know that no unfinished
// execution needs it. One that is not there is no error.
func (s *Store) DeleteWorkflow(ctx context.Context, hash string) error {
	return wrap(s.client.Unlink(ctx, s.workflowKey(hash)).Err(), "delete workflow %s", hash)
}
