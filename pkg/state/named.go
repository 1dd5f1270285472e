package state

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// WorkflowRecord says which document is the current one of a workflow that was
// stored under an id, to be started by it.
type WorkflowRecord struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	// Hash of the document, see PutWorkflow.
	Hash      string `json:"hash"`
	UpdatedAt int64  `json:"updatedAt"` // ms
}

// maxWorkflowID is the greatest length of a workflow's id in bytes.
const maxWorkflowID = 256

// PutNamedWorkflow stores the record of a workflow, in place of an earlier one of
// its id: any text of 1 to 256 bytes. The document is stored before, with
// PutWorkflow, so that a record never names one that is not there.
func (s *Store) PutNamedWorkflow(ctx context.Context, record WorkflowRecord) error {
	switch {
	case record.ID == "" || len(record.ID) > maxWorkflowID || !utf8.ValidString(record.ID):
		return fmt.Errorf("store workflow: id %.*q: must be a text of 1 to %d bytes", maxWorkflowID, record.ID, maxWorkflowID)
	case record.Hash == "":
		return fmt.Errorf("store workflow %q: no hash", record.ID)
	}
	text, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("store workflow %q: %w", record.ID, err)
	}
	return wrap(s.client.HSet(ctx, s.namedWorkflowsKey(), record.ID, text).Err(), "store workflow %q", record.ID)
}

// NamedWorkflow returns the record of the workflow with this id, or ErrNotFound.
func (s *Store) NamedWorkflow(ctx context.Context, id string) (WorkflowRecord, error) {
	text, err := s.client.HGet(ctx, s.namedWorkflowsKey(), id).Result()
	if errNil(err) {
		return WorkflowRecord{}, fmt.Errorf("workflow %q: %w", id, ErrNotFound)
	}
	if err != nil {
		return WorkflowRecord{}, wrap(err, "load workflow %q", id)
	}
	return recordOf(id, text)
}

// NamedWorkflows returns all records by id.
func (s *Store) NamedWorkflows(ctx context.Context) ([]WorkflowRecord, error) {
	all, err := s.client.HGetAll(ctx, s.namedWorkflowsKey()).Result()
	if err != nil {
		return nil, wrap(err, "list workflows")
	}
	records := make([]WorkflowRecord, 0, len(all))
	for id, text := range all {
		record, err := recordOf(id, text)
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	slices.SortFunc(records, func(a, b WorkflowRecord) int { return strings.Compare(a.ID, b.ID) })
	return records, nil
}

// DeleteNamedWorkflow removes a record, or returns ErrNotFound. The document
// stays, as executions may need it.
func (s *Store) DeleteNamedWorkflow(ctx context.Context, id string) error {
	n, err := s.client.HDel(ctx, s.namedWorkflowsKey(), id).Result()
	if err == nil && n == 0 {
		return fmt.Errorf("delete workflow %q: %w", id, ErrNotFound)
	}
	return wrap(err, "delete workflow %q", id)
}

func recordOf(id, text string) (WorkflowRecord, error) {
	var record WorkflowRecord
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		return record, fmt.Errorf("load workflow %q: %w", id, err)
	}
	return record, nil
}
