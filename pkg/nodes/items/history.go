package items

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/reprise-engine/reprise/pkg/node"
)

// What Remove Duplicates knows of earlier executions is kept as a conversation
// (node.Services.LoadMemory, node.Result.Memory): a list that survives the
// execution and that a result adds to once, when it is committed. Each run adds
// one note of what it saw. A conversation forgets its oldest messages, so every
// fullEvery-th note repeats all that is known, and whoever reads looks at the
// last historyWindow notes.
//
// Executions that run at the same time do not see each other's notes, so both
// may keep an item that is new to both. Neither note is lost.
//
// A note is stored before the result that brought it is committed. When all who
// knew of that result are lost in between, the run is repeated, and must not
// take the items that it noted itself for seen: notes say whose they are.
const (
	fullEvery     = 16
	historyWindow = 4 * fullEvery
	// defaultHistory is how many values are remembered unless the node says otherwise.
	defaultHistory = 10_000
)

// note is what one run saw.
type note struct {
	// Hashes of values, oldest first.
	Hashes []string `json:"h,omitempty"`
	// Number is the highest value, Date the latest one, both nil for none.
	Number *float64   `json:"n,omitempty"`
	Date   *time.Time `json:"d,omitempty"`
	// Full notes repeat all that was known.
	Full bool `json:"full,omitempty"`
	// Clear forgets whatever was before.
	Clear bool `json:"clear,omitempty"`
	// Run is a hash of the idempotency key of the run.
	Run string `json:"run,omitempty"`
}

// history is what earlier executions saw.
type history struct {
	session string
	run     string   // whose notes do not count, "" for none
	hashes  []string // oldest first
	known   map[string]bool
	fresh   map[string]bool // seen by this run
	number  *float64
	date    *time.Time
	since   int // notes since the last full one
}

// sessionOf names the history of a node, or the one that the nodes of a
// workflow share.
func sessionOf(ctx context.Context, call *node.Call) (string, error) {
	scope, err := choice(ctx, call, 0, "options.scope", "node")
	if err != nil {
		return "", err
	}
	owner := call.Workflow.ID
	if owner == "" {
		owner = call.Workflow.Name
	}
	switch scope {
	case "node":
		return "deduplication__" + owner + "__" + call.Node.Name, nil
	case "workflow":
		return "deduplication__" + owner, nil
	}
	return "", node.OperationError(-1, "The scope '"+scope+"' is unknown", "Choose node or workflow.")
}

func loadHistory(ctx context.Context, call *node.Call) (*history, error) {
	if call.LoadMemory == nil {
		return nil, errors.New("this process has no store that outlives an execution, which the history of Remove Duplicates needs")
	}
	session, err := sessionOf(ctx, call)
	if err != nil {
		return nil, err
	}
	notes, err := call.LoadMemory(ctx, session, historyWindow)
	if err != nil {
		return nil, fmt.Errorf("load the history of Remove Duplicates: %w", err)
	}
	h := &history{session: session, run: runOf(call), known: map[string]bool{}, fresh: map[string]bool{}}
	for _, raw := range notes {
		var n note
		if err := json.Unmarshal(raw, &n); err != nil {
			return nil, fmt.Errorf("read the history of Remove Duplicates: %w", err)
		}
		if h.run == "" || n.Run != h.run {
			h.add(n)
		}
	}
	return h, nil
}

// runOf names the run of a call, the same for all its attempts.
func runOf(call *node.Call) string {
	if call.IdempotencyKey == "" {
		return ""
	}
	return hashOf(call.IdempotencyKey)
}

func (h *history) add(n note) {
	if n.Clear {
		*h = history{session: h.session, run: h.run, known: map[string]bool{}, fresh: map[string]bool{}}
		return
	}
	for _, hash := range n.Hashes {
		if !h.known[hash] {
			h.known[hash] = true
			h.hashes = append(h.hashes, hash)
		}
	}
	if n.Number != nil && (h.number == nil || *n.Number > *h.number) {
		h.number = n.Number
	}
	if n.Date != nil && (h.date == nil || n.Date.After(*h.date)) {
		h.date = n.Date
	}
	h.since++
	if n.Full {
		h.since = 0
	}
}

// limit forgets the oldest values beyond size.
func (h *history) limit(size int) {
	if over := len(h.hashes) - size; over > 0 {
		for _, hash := range h.hashes[:over] {
			delete(h.known, hash)
		}
		h.hashes = h.hashes[over:]
	}
}

// append is the addition to the conversation that tells of n, nil when n says
// nothing new. size bounds the values in a note.
func (h *history) append(n note, size int) ([]node.MemoryAppend, error) {
	if !n.Clear && len(n.Hashes) == 0 && n.Number == nil && n.Date == nil {
		return nil, nil
	}
	if !n.Clear && h.since >= fullEvery-1 {
		h.add(n)
		h.limit(size)
		n = note{Hashes: h.hashes, Number: h.number, Date: h.date, Full: true}
	}
	n.Run = h.run
	raw, err := json.Marshal(n)
	if err != nil {
		return nil, fmt.Errorf("encode the history of Remove Duplicates: %w", err)
	}
	return []node.MemoryAppend{{Session: h.session, Messages: []json.RawMessage{raw}}}, nil
}

// hashOf stands for a value in the history, so that it need not be kept itself.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawStdEncoding.EncodeToString(sum[:9])
}
