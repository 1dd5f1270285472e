package labtest

import (
	"encoding/json"
	"io"
	"net/http"
	"sync"

	"github.com/tidwall/gjson"
)

// Ledger is a page that writes down every call of it and never takes two for one.
// It answers {"ok": true, "entry": <number, from 1>, "text": <the call's>}.
type Ledger struct {
	URL string

	mu      sync.Mutex
	entries []Entry
}

// Entry is one call of a ledger.
type Entry struct {
	Text string // the member "text" of the body, or of the query
	Key  string // the header Idempotency-Key
}

// Ledger opens a ledger at a path of the site. onEntry, when not nil, is called
// with each entry before it is answered.
func (s *Site) Ledger(path string, onEntry func(Entry)) *Ledger {
	l := &Ledger{URL: s.URL + path}
	s.Handle(path, func(w http.ResponseWriter, r *http.Request) {
		text := r.URL.Query().Get("text")
		data, _ := io.ReadAll(r.Body)
		if given := gjson.GetBytes(data, "text"); given.Exists() {
			text = given.String()
		}
		entry := Entry{Text: text, Key: r.Header.Get("Idempotency-Key")}
		l.mu.Lock()
		l.entries = append(l.entries, entry)
		n := len(l.entries)
		l.mu.Unlock()
		if onEntry != nil {
			onEntry(entry)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(struct {
			OK    bool   `json:"ok"`
			Entry int    `json:"entry"`
			Text  string `json:"text"`
		}{true, n, entry.Text})
	})
	return l
}

// Texts of all entries, in order.
func (l *Ledger) Texts() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	texts := make([]string, len(l.entries))
	for i, e := range l.entries {
		texts[i] = e.Text
	}
	return texts
}
