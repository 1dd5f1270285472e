package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/readiness"
	"github.com/reprise-engine/reprise/internal/service"
)

const validateDir = "testdata/validate"

// validated is the output of validate --json.
type validated struct {
	Files        []readiness.Report
	NotWorkflows []notWorkflow
	Summary      readiness.Summary
}

func validateJSON(t *testing.T, code int, args ...string) validated {
	t.Helper()
	o := reprise(t, append([]string{"workflows", "validate", "--json"}, args...)...)
	require.Equal(t, code, o.code, o.stderr)
	var v validated
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &v))
	return v
}

func TestValidateTellsWhatIsMissing(t *testing.T) {
	v := validateJSON(t, service.ExitUsage, validateDir)
	found := map[string][]string{}
	runs := map[string]bool{}
	for _, r := range v.Files {
		name, err := filepath.Rel(validateDir, r.File)
		require.NoError(t, err)
		runs[name] = r.Runs
		for _, f := range r.Findings {
			found[name] = append(found[name], string(f.Severity)+" "+string(f.Kind)+" "+f.Node+": "+f.What)
		}
	}
	assert.Equal(t, map[string]bool{
		"good.json": true, "pinned.json": true, "loose.json": true, "calls/child.json": true, "calls/parent.json": true,
		"node-type.json": false, "version.json": false, "options.json": false, "expression.json": false, "code.json": false, "credentials.json": false,
	}, runs)
	assert.Equal(t, map[string][]string{
		"pinned.json":       {"warning node type Sheet: vendor-nodes.spreadsheet"},
		"loose.json":        {"warning option Wait: n8n-nodes-base.wait: responseMode responseNode"},
		"calls/parent.json": {"warning sub-workflow Call another: gone"},
		"node-type.json":    {"error node type Sheet: vendor-nodes.spreadsheet", "error node type Sheet 2: vendor-nodes.spreadsheet"},
		"version.json":      {"error version Limit: n8n-nodes-base.limit 9"},
		"options.json":      {"error option Wait: n8n-nodes-base.wait: responseMode responseNode", "warning option Request: n8n-nodes-base.httpRequest: options.sparkle"},
		"expression.json":   {"error expression Set: invalid syntax"},
		"code.json": {
			"error option Python: n8n-nodes-base.code: language python",
			"error code Code: a script that does not compile", "error module Modules: no-such-module",
		},
		"credentials.json": {"error credential type Model: azureOpenAiApi"},
	}, found)
	require.Len(t, v.NotWorkflows, 1)
	assert.Contains(t, v.NotWorkflows[0].File, "settings.json")

	assert.Equal(t, 11, v.Summary.Workflows)
	assert.Equal(t, 5, v.Summary.Runs)
	assert.Contains(t, v.Summary.Missing, readiness.Missing{Kind: readiness.KindType, What: "vendor-nodes.spreadsheet", Workflows: 1, Alone: 1, Places: 2})
	assert.Contains(t, v.Summary.Missing, readiness.Missing{Kind: readiness.KindModule, What: "no-such-module", Workflows: 1, Alone: 0, Places: 1})
}

func TestValidateLooksForWhatIsGiven(t *testing.T) {
	// With all callable workflows given, one that is not among them is missing.
	v := validateJSON(t, service.ExitUsage, validateDir+"/calls/parent.json", "--workflows", validateDir+"/calls")
	require.Len(t, v.Files[0].Findings, 1)
	assert.Equal(t, "gone", v.Files[0].Findings[0].What)

	file := filepath.Join(t.TempDir(), "credentials.json")
	require.NoError(t, os.WriteFile(file, []byte(`[{"id":"1","name":"Other","type":"smtp","data":{"password":"sk-secret"}}]`), 0o600))
	o := reprise(t, "workflows", "validate", validateDir+"/credentials.json", "--credentials", file)
	assert.Equal(t, service.ExitUsage, o.code)
	assert.Contains(t, o.stdout, `credentials.smtp: there is no credential "Office mail"`)
	assert.NotContains(t, o.stdout, "sk-secret")
}

func TestValidateForPeople(t *testing.T) {
	o := reprise(t, "workflows", "validate", validateDir, "--summary")
	assert.Equal(t, service.ExitUsage, o.code)
	assert.Contains(t, o.stdout, "5 of 11 workflows can run here; 1 files are no workflows")
	assert.Contains(t, o.stdout, "        1          1  node type: vendor-nodes.spreadsheet\n")

	o = reprise(t, "workflows", "validate", validateDir+"/good.json")
	assert.Equal(t, service.ExitOK, o.code)
	assert.Contains(t, o.stdout, "can run         testdata/validate/good.json")

	o = reprise(t, "workflows", "validate", validateDir+"/settings.json")
	assert.Equal(t, service.ExitUsage, o.code, "a named file that is no workflow")
	reprise(t, "workflows", "validate", t.TempDir()).failed(t, service.ExitUsage, "no .json files")
	reprise(t, "workflows", "validate", "testdata/none.json").failed(t, service.ExitUsage, "none.json")
}

// The examples are what people try first: they run.
func TestValidateExamples(t *testing.T) {
	validateJSON(t, service.ExitOK, "../../examples")
}

// BenchmarkValidate checks a hundred files at a time.
func BenchmarkValidate(b *testing.B) {
	files, err := filesToCheck([]string{validateDir})
	require.NoError(b, err)
	var docs []document
	for len(docs) < 100 {
		for _, f := range files {
			if w, err := parseFile(f.path); err == nil {
				docs = append(docs, document{id: w.ID, file: f.path, workflow: w})
			}
		}
	}
	docs = docs[:100]
	for b.Loop() {
		if _, err := (&validateOptions{}).check(b.Context(), docs); err != nil {
			b.Fatal(err)
		}
	}
}
