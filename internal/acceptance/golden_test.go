package acceptance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/internal/labtest"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// goldenCase is one entry of testdata/golden/index.json: a workflow, and how to
// judge its run. "same": as the recorded run beside it; "better": by the assertion
// of its name, since Right is better than what n8n does.
type goldenCase struct {
	Name, Group, Expect, Right string
	// Workflow is the name of the document's file when it is not Name.
	Workflow string
	// Needs: "webhook" (it starts with one), "resume" (it waits, and goes on),
	// "workflows" (it calls others), "parent" (it is called by one).
	Needs []string
}

func (c *goldenCase) needs(what string) bool { return slices.Contains(c.Needs, what) }

// waits is true for cases whose run is recorded while it waits or after that.
func (c *goldenCase) waits() bool { return c.needs("resume") || strings.HasSuffix(c.Name, ".waiting") }

func (c *goldenCase) document(t *testing.T) []byte {
	t.Helper()
	name := c.Workflow
	if name == "" {
		name = c.Name
	}
	return read(t, "golden/"+name+".workflow.json")
}

func (c *goldenCase) recorded(t *testing.T) gjson.Result {
	t.Helper()
	return gjson.ParseBytes(read(t, "golden/"+c.Name+".run.json"))
}

func golden(t *testing.T) []goldenCase {
	t.Helper()
	var cases []goldenCase
	require.NoError(t, json.Unmarshal(read(t, "golden/index.json"), &cases))
	require.NotEmpty(t, cases)
	return cases
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return data
}

// TestGolden runs workflows that a real n8n ran and compares status, errors, what
// ran, how often and in which order, and per record status, error, source, arguments
// and items. Cases that wait, or are called by others, have tests of their own.
func TestGolden(t *testing.T) {
	t.Parallel()
	l := startLab(t)
	l.putCalled(t)
	script := read(t, "scenarios.json")
	for _, c := range golden(t) {
		if c.waits() || c.needs("parent") {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			site := l.Site()
			site.Script(t, string(script))
			submission := &queue.Submission{Workflow: documentFor(site, c.document(t))}
			if c.needs("webhook") {
				submission.Mode, submission.Input = "webhook", webhookCall(c.recorded(t))
			}
			run := l.runOf(t, submission)
			if c.Expect == "better" {
				check := better[c.Name]
				require.NotNil(t, check, "no assertion is written for this case")
				require.Equal(t, "success", run.Get("status").Str, "%s\n%s", c.Right, run.Get("data.resultData.error"))
				check(t, run, site.ModelRequests())
				return
			}
			want := c.recorded(t)
			same(t, want, run)
			if requests := want.Get("modelRequests"); requests.Exists() {
				assert.Equal(t, requests.Int(), site.ModelRequests(), "model requests")
			}
		})
	}
}

func same(t *testing.T, want, got gjson.Result) {
	t.Helper()
	if diffs := differences(want, got); len(diffs) > 0 {
		t.Errorf("the run differs from the recorded one:\n%s", strings.Join(diffs, "\n"))
	}
}

// putCalled stores the workflows that recorded ones call.
func (l *lab) putCalled(t *testing.T) {
	t.Helper()
	for _, name := range []string{"l2_subworkflow", "sub_callee", "sub_fails"} {
		_, err := l.Conn.PutWorkflow(t.Context(), queue.WorkflowPutRequest{Document: read(t, "golden/"+name+".workflow.json")})
		require.NoError(t, err)
	}
}

// webhookCall is the item that a recorded run began with.
func webhookCall(recorded gjson.Result) workflow.Items {
	return inputOf(recorded.Get("data.resultData.runData.Webhook.0.data.main.0.0.json").Raw)
}

// documentFor is a recorded workflow that calls a site instead of the ports, the
// credentials and the mailbox it was recorded with.
func documentFor(s *labtest.Site, recorded []byte) []byte {
	return []byte(strings.NewReplacer(
		"http://127.0.0.1:18080", s.URL, "mockOpenAiCred01", s.Credential,
		"mockSmtpCred0001", labtest.SMTPCredential, "boss@lab.local", s.Address,
	).Replace(string(recorded)))
}

// TestComparison makes sure that the comparison finds what it looks for: a
// recorded run is like itself, and no longer once it was altered.
func TestComparison(t *testing.T) {
	t.Parallel()
	for _, c := range golden(t) {
		if c.Expect != "same" {
			continue
		}
		text := c.recorded(t).Raw
		if c.waits() {
			text = renumbered(t, c.recorded(t)).Raw
		}
		start := "Start"
		switch {
		case c.needs("parent"):
			start = "Called"
		case c.needs("webhook"):
			start = "Webhook"
		}
		want := gjson.Parse(text)
		require.Empty(t, differences(want, want), c.Name)
		for what, altered := range map[string]string{
			"status":  strings.Replace(text, `"status":"`, `"status":"un`, 1),
			"source":  strings.Replace(text, `"previousNode":"`+start+`"`, `"previousNode":"Stop"`, 1),
			"name":    strings.Replace(text, `"`+start+`":[`, `"Begin":[`, 1),
			"records": strings.Replace(text, `"executionStatus":"success"`, `"executionStatus":"error"`, 1),
			"items":   strings.Replace(text, `{"json":{`, `{"json":{"altered":1,`, 1),
			"pairs":   strings.Replace(text, `"pairedItem":{"item":0}`, `"pairedItem":{"item":7}`, 1),
		} {
			require.NotEqual(t, text, altered, "%s: the test alters nothing (%s)", c.Name, what)
			require.NotEmpty(t, differences(want, gjson.Parse(altered)), "%s: altered %s", c.Name, what)
		}
	}
}
