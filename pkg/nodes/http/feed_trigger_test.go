package http

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	nethttp "net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
)

// polled is a feed that a trigger polls, and what its polls have noted.
type polled struct {
	t       *testing.T
	entries []string
	status  int
	url     string
	notes   []json.RawMessage
}

func newPolled(t *testing.T, entries ...string) *polled {
	p := &polled{t: t, entries: entries, status: 200}
	server := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		w.WriteHeader(p.status)
		_, _ = io.WriteString(w, `<rss version="2.0"><channel><title>News</title>`)
		for _, e := range p.entries {
			_, _ = io.WriteString(w, `<item>`+e+`</item>`)
		}
		_, _ = io.WriteString(w, `</channel></rss>`)
	}))
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

// entry of a feed; day 0 has no date.
func entry(guid string, day int) string {
	date := ""
	if day > 0 {
		date = fmt.Sprintf("<pubDate>%02d Jun 2025 04:00:00 GMT</pubDate>", day)
	}
	return "<title>T " + guid + "</title><guid>" + guid + "</guid>" + date
}

// attempt is one attempt of a poll; its result is not committed yet.
func (p *polled) attempt(key, mode string) (*node.Result, error) {
	call := newCall(p.t, p.url, `{"feedUrl":"BASE/feed"}`)
	call.Node.Type, call.Node.TypeVersion, call.Node.Name = TypePoll, 1, "Feed"
	call.IdempotencyKey, call.Execution.Mode, call.Workflow.ID = key, mode, "w"
	call.LoadMemory = func(_ context.Context, session string, n int) ([]json.RawMessage, error) {
		require.Equal(p.t, "poll__w__Feed", session)
		return p.notes[max(0, len(p.notes)-n):], nil
	}
	return Config{MaxResponseBytes: 1 << 20}.pollFeed(context.Background(), call)
}

func (p *polled) note(r *node.Result) {
	for _, m := range r.Memory {
		p.notes = append(p.notes, m.Messages...)
	}
}

func guids(r *node.Result) []string {
	if r.Outputs == nil {
		return nil
	}
	list := []string{}
	for _, item := range r.Outputs[0] {
		list = append(list, gjson.GetBytes(item.JSON, "guid").Str)
	}
	return list
}

// poll is a poll whose result is committed.
func (p *polled) poll(key string) []string {
	p.t.Helper()
	r, err := p.attempt(key, "trigger")
	require.NoError(p.t, err)
	p.note(r)
	return guids(r)
}

func TestFeedTriggerGivesOutWhatIsNew(t *testing.T) {
	p := newPolled(t, entry("b", 12), entry("a", 10))
	require.Nil(t, p.poll("1"), "what was there is noted")
	require.Nil(t, p.poll("2"))
	require.Len(t, p.notes, 1, "nothing new is not noted")
	p.entries = []string{entry("d", 14), entry("c", 13), entry("c", 13), entry("b", 12), entry("a", 10)}
	require.Equal(t, []string{"d", "c"}, p.poll("3"))
	p.entries = []string{entry("late", 11), entry("undated", 0), entry("d", 14), entry("older", 9)}
	require.Equal(t, []string{"late", "undated"}, p.poll("4"), "an entry that was announced late is new, one from before the first poll is not")
	require.Nil(t, p.poll("5"))

	r, err := p.attempt("hand", "manual")
	require.NoError(t, err)
	require.Equal(t, []string{"late"}, guids(r), "who tries the workflow gets an example")
	require.Empty(t, r.Memory)

	p.status = 503
	_, err = p.attempt("6", "trigger")
	require.Error(t, err, "a feed that cannot be read is an error and no empty feed")
	p.status = 200
	require.Nil(t, p.poll("7"))
}

// A run that is repeated although its note was stored gives out what the note names, and
// what is newer is left to the next poll.
func TestFeedTriggerIsRepeated(t *testing.T) {
	p := newPolled(t, entry("a", 10))
	require.Nil(t, p.poll("1"))
	p.entries = append(p.entries, entry("b", 11))
	require.Equal(t, []string{"b"}, p.poll("2"))
	p.entries = append(p.entries, entry("c", 12))
	again, err := p.attempt("2", "trigger")
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, guids(again), "its note is refused by its id, and says the same")
	require.Equal(t, []string{"c"}, p.poll("3"))

	q := newPolled(t, entry("a", 10))
	require.Nil(t, q.poll("1"))
	q.entries = append(q.entries, entry("b", 11))
	again, err = q.attempt("1", "trigger")
	require.NoError(t, err)
	require.Nil(t, guids(again))
	require.Equal(t, []string{"b"}, q.poll("2"))
}

// What polls have seen is known after any number of them, though only the last notes are read.
func TestFeedTriggerRemembers(t *testing.T) {
	p := newPolled(t, entry("first", 0))
	require.Nil(t, p.poll("0"))
	for n := range 200 {
		p.entries = append([]string{entry(fmt.Sprint("e", n), 0)}, p.entries...)
		require.Equal(t, []string{fmt.Sprint("e", n)}, p.poll(fmt.Sprint("k", n)))
	}
	require.Nil(t, p.poll("last"))
	p.notes = p.notes[150:]
	require.Nil(t, p.poll("last"), "old notes may be forgotten")
}
