package acceptance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/internal/labtest"
)

// goldenCase is one entry of testdata/golden/index.json: a workflow, and how to
// judge its run. "same": as the recorded run beside it; "better": by the assertion
// of its name, since Right is better than what n8n does.
type goldenCase struct {
	Name, Group, Expect, Right string
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
// and items.
func TestGolden(t *testing.T) {
	t.Parallel()
	l := startLab(t)
	script := read(t, "scenarios.json")
	for _, c := range golden(t) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			site := l.Site()
			site.Script(t, string(script))
			document := read(t, "golden/"+c.Name+".workflow.json")
			run := l.run(t, documentFor(site, document), nil)
			if c.Expect == "better" {
				check := better[c.Name]
				require.NotNil(t, check, "no assertion is written for this case")
				require.Equal(t, "success", run.Get("status").Str, "%s\n%s", c.Right, run.Get("data.resultData.error"))
				check(t, run, site.ModelRequests())
				return
			}
			want := gjson.ParseBytes(read(t, "golden/"+c.Name+".run.json"))
			if diffs := differences(want, run); len(diffs) > 0 {
				t.Errorf("the run differs from the recorded one:\n%s", strings.Join(diffs, "\n"))
			}
			if requests := want.Get("modelRequests"); requests.Exists() {
				assert.Equal(t, requests.Int(), site.ModelRequests(), "model requests")
			}
		})
	}
}

// documentFor is a recorded workflow that calls a site instead of the ports and
// the credential it was recorded with.
func documentFor(s *labtest.Site, recorded []byte) []byte {
	return []byte(strings.NewReplacer("http://127.0.0.1:18080", s.URL, "mockOpenAiCred01", s.Credential).Replace(string(recorded)))
}

// TestComparison makes sure that the comparison finds what it looks for: a
// recorded run is like itself, and no longer once it was altered.
func TestComparison(t *testing.T) {
	t.Parallel()
	for _, c := range golden(t) {
		if c.Expect != "same" {
			continue
		}
		text := string(read(t, "golden/"+c.Name+".run.json"))
		want := gjson.Parse(text)
		require.Empty(t, differences(want, want), c.Name)
		for what, altered := range map[string]string{
			"status":  strings.Replace(text, `"status":"`, `"status":"un`, 1),
			"source":  strings.Replace(text, `"previousNode":"Start"`, `"previousNode":"Stop"`, 1),
			"name":    strings.Replace(text, `"Start":[`, `"Begin":[`, 1),
			"records": strings.Replace(text, `"executionStatus":"success"`, `"executionStatus":"error"`, 1),
			"items":   strings.Replace(text, `{"json":{`, `{"json":{"altered":1,`, 1),
			"pairs":   strings.Replace(text, `"pairedItem":{"item":0}`, `"pairedItem":{"item":7}`, 1),
		} {
			require.NotEqual(t, text, altered, "%s: the test alters nothing (%s)", c.Name, what)
			require.NotEmpty(t, differences(want, gjson.Parse(altered)), "%s: altered %s", c.Name, what)
		}
	}
}
