package trigger_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/nodes/imap/imaptest"
	"github.com/reprise-engine/reprise/pkg/queue"
)

const everySecond = "* * * * * *"

func pollTimes(cron string) object {
	return object{"item": []object{{"mode": "custom", "cronExpression": cron}}}
}

// given counts what the trigger of a workflow gave out in all executions that are listed, by a
// member of the items. Executions without items count as "nothing".
func (l *lab) given(t *testing.T, workflow, trigger, member string) map[string]int {
	t.Helper()
	seen := map[string]int{}
	cursor := ""
	for {
		list, err := l.Conn.List(t.Context(), queue.ListRequest{WorkflowID: workflow, Limit: 100, Cursor: cursor})
		if err != nil {
			return seen
		}
		for _, x := range list.Executions {
			full, err := l.Conn.Get(t.Context(), x.ID, true)
			if err != nil || !full.Status.Finished() {
				continue
			}
			items := gjson.GetBytes(full.Data, "resultData.runData."+trigger+".0.data.main.0").Array()
			if len(items) == 0 {
				seen["nothing"]++
			}
			for _, item := range items {
				seen[item.Get("json."+member).String()]++
			}
		}
		if cursor = list.Cursor; cursor == "" {
			return seen
		}
	}
}

// Every entry of a feed begins one execution with two coordinators, also when one of them is
// killed and comes back, and polls without a new entry are in no list.
func TestEachEntryOnceWithTwoCoordinators(t *testing.T) {
	var entries, polls atomic.Int64
	entries.Store(1)
	feed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		polls.Add(1)
		fmt.Fprint(w, `<rss version="2.0"><channel><title>News</title>`)
		for n := entries.Load(); n > 0; n-- {
			fmt.Fprintf(w, `<item><title>Entry %d</title><guid>g%d</guid></item>`, n, n)
		}
		fmt.Fprint(w, `</channel></rss>`)
	}))
	defer feed.Close()
	c, labs := startTwo(t)
	labs[0].activate(t, flow("news", node("Feed", "n8n-nodes-base.rssFeedReadTrigger", 1, object{"feedUrl": feed.URL, "pollTimes": pollTimes(everySecond)}),
		node("After", noOp, 1, object{})))
	polled := func(more int64) {
		t.Helper()
		before := polls.Load()
		require.Eventually(t, func() bool { return polls.Load() >= before+more }, within, 20*time.Millisecond, "it is polled")
	}
	want := map[string]int{}
	publish := func(n int) {
		for range n {
			want[fmt.Sprintf("g%d", entries.Add(1))] = 1
		}
	}
	arrived := func() {
		t.Helper()
		require.Eventually(t, func() bool { return len(labs[0].given(t, "news", "Feed", "guid")) >= len(want) }, within, 100*time.Millisecond)
	}
	polled(2)
	publish(3)
	arrived()
	publish(2)
	c.Coordinators[0].Kill()
	publish(2)
	arrived()
	c.Start(c.Coordinators[0])
	c.AwaitReady(c.Coordinators[0])
	publish(1)
	c.Workers[0].Kill()
	publish(1)
	c.Start(c.Workers[0])
	arrived()
	polled(3)
	_, err := c.Conn.ActivateWorkflow(t.Context(), "news", false)
	require.NoError(t, err)
	require.Equal(t, want, labs[0].given(t, "news", "Feed", "guid"), "neither lost nor doubled, and nothing of the polls that found nothing")
}

// Every mail begins an execution once, though a coordinator and the worker are killed meanwhile, and is
// marked as read in the end. Only the worker has the password.
func TestEachMailOnceWithTwoCoordinators(t *testing.T) {
	server := imaptest.Start(t)
	c, labs := newTwo(t)
	file := filepath.Join(t.TempDir(), "credentials.json")
	credentials, err := json.Marshal([]object{{"id": "post", "name": "Post", "type": "imap", "data": server.Credential()}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, credentials, 0o600))
	for _, w := range c.Workers {
		w.Env = append(w.Env, "REPRISE_CREDENTIALS_FILE="+file)
	}
	c.StartAll()
	want := map[string]int{}
	deliver := func(n int) {
		t.Helper()
		for range n {
			subject := fmt.Sprint("mail ", len(want))
			server.Deliver(t, "From: bob@example.com\nSubject: "+subject+"\n\nHello\n")
			want[subject] = 1
		}
	}
	deliver(2)
	trigger := node("Post", "n8n-nodes-base.emailReadImap", 2, object{"pollTimes": pollTimes(everySecond)})
	trigger["credentials"] = object{"imap": object{"id": "post", "name": "Post"}}
	labs[0].activate(t, flow("post", trigger, node("After", noOp, 1, object{})))
	arrived := func() {
		t.Helper()
		require.Eventually(t, func() bool { return len(labs[0].given(t, "post", "Post", "subject")) >= len(want) }, within, 100*time.Millisecond)
	}
	arrived()
	deliver(2)
	c.Coordinators[1].Kill()
	deliver(2)
	arrived()
	c.Start(c.Coordinators[1])
	c.AwaitReady(c.Coordinators[1])
	deliver(2)
	c.Workers[0].Kill()
	deliver(1)
	c.Start(c.Workers[0])
	arrived()
	require.Eventually(t, func() bool { return server.Unseen(t) == 0 }, within, 50*time.Millisecond, "they are marked as read")
	_, err = c.Conn.ActivateWorkflow(t.Context(), "post", false)
	require.NoError(t, err)
	require.Equal(t, want, labs[0].given(t, "post", "Post", "subject"))
}
