package memstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/reprise-engine/reprise/pkg/state"
)

// memory is one conversation.
type memory struct {
	messages []json.RawMessage
	ids      []string // of the last appends, oldest first
}

// AppendMemory implements the contract of state.Store.
func (s *Store) AppendMemory(_ context.Context, session, id string, messages []json.RawMessage) error {
	if session == "" || id == "" {
		return errors.New("append to memory: session and id must not be empty")
	}
	if len(messages) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.memory[session]
	if m == nil {
		m = &memory{}
		s.memory[session] = m
	}
	if slices.Contains(m.ids, id) {
		return nil
	}
	m.ids = last(append(m.ids, id), s.config.MemoryLimit)
	for _, message := range messages {
		m.messages = append(m.messages, bytes.Clone(message))
	}
	m.messages = last(m.messages, s.config.MemoryLimit)
	return nil
}

// Memory implements the contract of state.Store.
func (s *Store) Memory(_ context.Context, session string, n int) ([]json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.memory[session]
	if m == nil {
		return []json.RawMessage{}, nil
	}
	if n <= 0 {
		n = len(m.messages)
	}
	return slices.Clone(last(m.messages, n)), nil
}

// last are the last n elements.
func last[E any](list []E, n int) []E { return list[max(0, len(list)-n):] }

// PutWorkflow implements the contract of state.Store.
func (s *Store) PutWorkflow(_ context.Context, hash string, document []byte) error {
	if hash == "" {
		return errors.New("store workflow: no hash")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.workflows[hash] == nil {
		s.workflows[hash] = bytes.Clone(document)
	}
	return nil
}

// Workflow implements the contract of state.Store.
func (s *Store) Workflow(_ context.Context, hash string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	document := s.workflows[hash]
	if document == nil {
		return nil, fmt.Errorf("workflow %s: %w", hash, state.ErrNotFound)
	}
	return bytes.Clone(document), nil
}

// PutNamedWorkflow implements the contract of state.Store.
func (s *Store) PutNamedWorkflow(_ context.Context, record state.WorkflowRecord) error {
	switch {
	case record.ID == "" || len(record.ID) > 256 || !utf8.ValidString(record.ID):
		return fmt.Errorf("store workflow: id %.256q: must be a text of 1 to 256 bytes", record.ID)
	case record.Hash == "":
		return fmt.Errorf("store workflow %q: no hash", record.ID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.named[record.ID] = record
	return nil
}

// UpdateNamedWorkflow implements the contract of state.Store.
func (s *Store) UpdateNamedWorkflow(_ context.Context, id string, change func(*state.WorkflowRecord, bool) error) (state.WorkflowRecord, error) {
	if id == "" || len(id) > 256 || !utf8.ValidString(id) {
		return state.WorkflowRecord{}, fmt.Errorf("store workflow: id %.256q: must be a text of 1 to 256 bytes", id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	record, found := s.named[id]
	record.ID = id
	if err := change(&record, found); err != nil {
		return state.WorkflowRecord{}, err
	}
	if record.Hash == "" || record.ID != id {
		return state.WorkflowRecord{}, fmt.Errorf("store workflow %q: no hash, or another id", id)
	}
	s.named[id] = record
	return record, nil
}

// NamedWorkflow implements the contract of state.Store.
func (s *Store) NamedWorkflow(_ context.Context, id string) (state.WorkflowRecord, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	record, ok := s.named[id]
	if !ok {
		return record, fmt.Errorf("workflow %q: %w", id, state.ErrNotFound)
	}
	return record, nil
}

// NamedWorkflows implements the contract of state.Store.
func (s *Store) NamedWorkflows(context.Context) ([]state.WorkflowRecord, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	records := make([]state.WorkflowRecord, 0, len(s.named))
	for _, r := range s.named {
		records = append(records, r)
	}
	slices.SortFunc(records, func(a, b state.WorkflowRecord) int { return strings.Compare(a.ID, b.ID) })
	return records, nil
}

// DeleteNamedWorkflow implements the contract of state.Store.
func (s *Store) DeleteNamedWorkflow(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.named[id]; !ok {
		return fmt.Errorf("delete workflow %q: %w", id, state.ErrNotFound)
	}
	delete(s.named, id)
	return nil
}
