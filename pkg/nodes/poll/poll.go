// Package poll keeps what a trigger that polls has seen, from one poll to the next.
//
// A coordinator begins an execution at each poll time, one after the other, and its trigger runs
// as a job of a worker: it reads a source, gives out what is new, and notes that. When nothing is
// new it gives out nothing at all, and the execution leaves no trace.
//
// Notes are kept as a conversation (node.Services.LoadMemory, node.Result.Memory): a list that
// outlives executions, to which a result adds once, when it is committed. So what was given
// out and that it was are stored together or not at all, with one exception: a note is stored a
// moment before the result that brought it. When all who knew of that result are lost in
// between, the run is repeated, under the same idempotency key. It finds its own note, and gives out
// just what that names.
package poll

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

const (
	// Every fullEvery-th note repeats all that is known, as old ones are forgotten; whoever reads
	// looks at the last window notes.
	fullEvery = 16
	window    = 4 * fullEvery
	// Remembered is how many keys are known at least.
	Remembered = 1000
)

// note is what one poll saw.
type note struct {
	// Run is a hash of the idempotency key of the run.
	Run string `json:"run,omitempty"`
	// Found are hashes of the keys of what was given out; Seen of what was there before, in the first note
	// and in full ones.
	Found []string `json:"found,omitempty"`
	Seen  []string `json:"seen,omitempty"`
	Full  bool     `json:"full,omitempty"`
	// Mark is the trigger's own.
	Mark json.RawMessage `json:"mark,omitempty"`
}

// History is what earlier polls of a node saw.
type History struct {
	// Mark is what the last of them left, nil when there was none.
	Mark json.RawMessage
	// First: nothing was ever noted.
	First bool
	// Again: an earlier attempt of this run has noted already what it found, and left OwnMark.
	Again   bool
	OwnMark json.RawMessage

	session, run string
	keys         []string // oldest first
	known, own   map[string]bool
	since        int // notes since the last full one
}

// ByHand reports whether a person tries the workflow: then a trigger shows an example, and nothing is noted.
func ByHand(call *node.Call) bool {
	switch call.Execution.Mode {
	case "", "manual", "cli", "evaluation":
		return true
	}
	return false
}

// Load reads the history of the node of a call.
func Load(ctx context.Context, call *node.Call) (*History, error) {
	if call.LoadMemory == nil {
		return nil, errors.New("this process has no store that outlives an execution, which a trigger that polls needs")
	}
	owner := call.Workflow.ID
	if owner == "" {
		owner = call.Workflow.Name
	}
	h := &History{session: "poll__" + owner + "__" + call.Node.Name, First: true, known: map[string]bool{}, own: map[string]bool{}}
	if call.IdempotencyKey != "" {
		h.run = hashOf(call.IdempotencyKey)
	}
	notes, err := call.LoadMemory(ctx, h.session, window)
	if err != nil {
		return nil, fmt.Errorf("load what earlier polls saw: %w", err)
	}
	for _, raw := range notes {
		var n note
		if err := json.Unmarshal(raw, &n); err != nil {
			return nil, fmt.Errorf("read what earlier polls saw: %w", err)
		}
		if h.run != "" && n.Run == h.run {
			h.Again, h.OwnMark = true, n.Mark
			for _, hash := range n.Found {
				h.own[hash] = true
			}
			continue
		}
		h.add(n)
	}
	return h, nil
}

func (h *History) add(n note) {
	h.First = false
	for _, list := range [][]string{n.Seen, n.Found} {
		for _, hash := range list {
			if !h.known[hash] {
				h.known[hash] = true
				h.keys = append(h.keys, hash)
			}
		}
	}
	if n.Mark != nil {
		h.Mark = n.Mark
	}
	h.since++
	if n.Full {
		h.since = 0
	}
}

// Known reports whether an earlier poll noted a key.
func (h *History) Known(key string) bool { return h.known[hashOf(key)] }

// Found reports whether an earlier attempt of this run has noted a key as found.
func (h *History) Found(key string) bool { return h.own[hashOf(key)] }

// Result gives out items and notes the keys that they have, with a mark that is encoded as JSON. seen are the
// keys of what is noted without being given out. No items end the execution without a trace.
func (h *History) Result(items workflow.Items, found, seen []string, mark any) (*node.Result, error) {
	raw, err := json.Marshal(mark)
	if err != nil {
		return nil, fmt.Errorf("encode what the poll saw: %w", err)
	}
	n := note{Run: h.run, Mark: raw, Found: hashes(found), Seen: hashes(seen)}
	if h.since >= fullEvery-1 {
		// What this run found stays apart, for an attempt that repeats it.
		n.Full, n.Seen = true, append(h.keys[max(0, len(h.keys)-max(Remembered, len(seen))):], n.Seen...)
	}
	text, err := json.Marshal(n)
	if err != nil {
		return nil, fmt.Errorf("encode what the poll saw: %w", err)
	}
	result := Nothing()
	if len(items) > 0 {
		result.Outputs = []workflow.Items{items}
	}
	result.Memory = []node.MemoryAppend{{Session: h.session, Messages: []json.RawMessage{text}}}
	return result, nil
}

// Nothing is the result of a poll that has nothing to note.
func Nothing() *node.Result { return &node.Result{Result: engine.Result{}} }

func hashes(keys []string) []string {
	list := make([]string, len(keys))
	for i, key := range keys {
		list[i] = hashOf(key)
	}
	return list
}

// hashOf stands for a key, so that it need not be kept itself.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawStdEncoding.EncodeToString(sum[:9])
}
