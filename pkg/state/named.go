package state

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
)

// WorkflowRecord says which document is the current one of a workflow that was
// stored under an id, to be started by it.
type WorkflowRecord struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	// Hash of the document, see PutWorkflow.
	Hash      string `json:"hash"`
	UpdatedAt int64  `json:"updatedAt"` // ms, when the document was stored
	// Version counts the documents that were stored under the id, from 1; 0 is from before
	// they were counted.
	Version int `json:"version,omitempty"`
	// Active workflows are begun by their triggers, since ActivatedAt (ms).
	Active      bool  `json:"active,omitempty"`
	ActivatedAt int64 `json:"activatedAt,omitempty"`
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
	if err := s.client.HSet(ctx, s.namedWorkflowsKey(), record.ID, text).Err(); err != nil {
		return wrap(err, "store workflow %q", record.ID)
	}
	s.noteWorkflows(ctx)
	return nil
}

// swapRecordScript changes a record unless somebody else did.
//
//	KEYS  1 the records
//	ARGV  1 id   2 the record as it was read, "" for none   3 the new one
//	reply 1 when it was changed, else 0
var swapRecordScript = newScript(`
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
`)

// swapTries is how often a record is read again that somebody else has changed.
const swapTries = 20

// UpdateNamedWorkflow changes the record of a workflow and returns it. change gets what is
// stored, found false and a record with nothing but its id when there is none; it is called again when
// somebody else changed the record meanwhile. Its error is returned as it is, and nothing is changed.
func (s *Store) UpdateNamedWorkflow(ctx context.Context, id string, change func(record *WorkflowRecord, found bool) error) (WorkflowRecord, error) {
	if id == "" || len(id) > maxWorkflowID || !utf8.ValidString(id) {
		return WorkflowRecord{}, fmt.Errorf("store workflow: id %.*q: must be a text of 1 to %d bytes", maxWorkflowID, id, maxWorkflowID)
	}
	for range swapTries {
		record := WorkflowRecord{ID: id}
		old, err := s.client.HGet(ctx, s.namedWorkflowsKey(), id).Result()
		found := err == nil
		switch {
		case found:
			if record, err = recordOf(id, old); err != nil {
				return WorkflowRecord{}, err
			}
		case !errNil(err):
			return WorkflowRecord{}, wrap(err, "load workflow %q", id)
		}
		if err := change(&record, found); err != nil {
			return WorkflowRecord{}, err
		}
		if record.Hash == "" || record.ID != id {
			return WorkflowRecord{}, fmt.Errorf("store workflow %q: no hash, or another id", id)
		}
		text, err := json.Marshal(record)
		if err != nil {
			return WorkflowRecord{}, fmt.Errorf("store workflow %q: %w", id, err)
		}
		call := swapRecordScript.call(ctx, []string{s.namedWorkflowsKey()}, []any{id, old, string(text)})
		s.run(ctx, []*redis.Cmd{call})
		swapped, err := call.Int()
		if err != nil {
			return WorkflowRecord{}, wrap(err, "store workflow %q", id)
		}
		if swapped == 1 {
			s.noteWorkflows(ctx)
			return record, nil
		}
	}
	return WorkflowRecord{}, fmt.Errorf("store workflow %q: it is changed by others all the time; try again", id)
}

// noteWorkflows has those who look at WorkflowsRevision read the records again. When that
// is lost they find the change with their next full look.
func (s *Store) noteWorkflows(ctx context.Context) {
	if err := s.client.Incr(ctx, s.workflowsRevisionKey()).Err(); err != nil {
		s.log.Debug("change of workflows was not noted", zap.Error(err))
	}
}

// WorkflowsRevision changes with every change of a named workflow. It is what a process
// looks at often, to read the records only when there is something new.
func (s *Store) WorkflowsRevision(ctx context.Context) (int64, error) {
	n, err := s.client.Get(ctx, s.workflowsRevisionKey()).Int64()
	if errNil(err) {
		return 0, nil
	}
	return n, wrap(err, "look for changed workflows")
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
	if err == nil {
		s.noteWorkflows(ctx)
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
