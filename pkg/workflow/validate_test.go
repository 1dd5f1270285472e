package workflow

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// catalog is a Catalog by type name.
type catalog map[string]*Spec

func (c catalog) Lookup(nodeType string, v float64) (*Spec, bool) {
	spec := c[nodeType]
	if spec == nil {
		return nil, false
	}
	for _, known := range spec.Versions {
		if known == v {
			return spec, true
		}
	}
	return spec, false
}

var known = catalog{
	manualTrigger: {Versions: []float64{1}, Trigger: true},
	chatTrigger:   {Versions: []float64{1, 1.1}, Trigger: true},
	errorTrigger:  {Versions: []float64{1}, Trigger: true},
	evalTrigger:   {Versions: []float64{1}, Trigger: true},
	"webhook":     {Versions: []float64{1}, Trigger: true},
	"set":         {Versions: []float64{3.4, 1}},
	"agent": {
		Versions: []float64{1}, SubNodes: map[string]string{LanguageModel: "Chat Model"},
		Accepts: []string{Tool, Memory},
	},
	"agentTool":  {Versions: []float64{1}, ToolNode: true, SubNodes: map[string]string{LanguageModel: "Chat Model"}},
	"model":      {Versions: []float64{1}, SubNode: true},
	"memory":     {Versions: []float64{1}, SubNode: true},
	"calculator": {Versions: []float64{1}, ToolNode: true},
}

// build makes a workflow of lines: "Name type [json members]" for a node and
// "A -type-> B" for a connection. "_" is an empty name.
func build(t testing.TB, lines, rest string) *Workflow {
	t.Helper()
	var nodes, connections []string
	for _, line := range strings.Split(strings.TrimSpace(lines), "\n") {
		line = strings.TrimSpace(line)
		fields := strings.SplitN(line, " ", 3)
		if len(fields) == 3 && strings.HasPrefix(fields[1], "-") {
			connType := strings.Trim(fields[1], "->")
			connections = append(connections, `"`+fields[0]+`":{"`+connType+`":[[{"node":"`+fields[2]+`","type":"`+connType+`","index":0}]]}`)
			continue
		}
		members := ""
		if len(fields) == 3 {
			members = "," + fields[2]
		}
		nodes = append(nodes, `{"name":"`+strings.Trim(fields[0], "_")+`","type":"`+fields[1]+`"`+members+`}`)
	}
	return mustParse(t, `{"nodes":[`+strings.Join(nodes, ",")+`],"connections":{`+strings.Join(connections, ",")+`}`+rest+`}`)
}

func TestValidate(t *testing.T) {
	const start = "Start " + manualTrigger + "\n"
	const agent = start + "Agent agent\nModel model\nStart -main-> Agent\nModel -ai_languageModel-> Agent\n"
	for name, row := range map[string]struct {
		lines, rest string
		want        []string
	}{
		"valid":           {agent, `,"settings":{"executionOrder":"v1","toolExecution":"parallel","timezone":"America/New_York"}`, nil},
		"no nodes at all": {`X ` + StickyNote, ``, []string{`error: No node to start the workflow from could be found: add a trigger, enable one, or name the node to start from`}},
		"trigger disabled": {"Start " + manualTrigger + " \"disabled\":true\nA set\nB set", ``,
			[]string{`error: No node to start the workflow from could be found: add a trigger, enable one, or name the node to start from`}},
		"only node":       {"A set", ``, nil},
		"two of one name": {start + "A set\nA set", ``, []string{`error: node "A", name: 2 nodes have this name; rename all but one`}},
		"disabled twin":   {start + "A set\nA set \"disabled\":true", ``, []string{`error: node "A", name: 2 nodes have this name; rename all but one`}},
		"notes of a name": {start + "A set\nA " + StickyNote + "\nA " + StickyNote, ``, nil},
		"name missing":    {start + "_ set", ``, []string{`error: nodes[1].name: is missing (type "set")`}},
		"type missing":    {start + "A  \"id\":\"1\"", ``, []string{`error: node "A", type: is missing`}},
		"unknown type":    {start + "A slack", ``, []string{`error: node "A", type: "slack" is not known here; disable the node, replace it or pin its data`}},
		"unknown trigger": {"A slackTrigger\nB set\nC set", ``, []string{`error: node "A", type: "slackTrigger" is not known here; disable the node, replace it or pin its data`}},
		"unknown, off":    {start + "A slack \"disabled\":true,\"onError\":\"x\",\"maxTries\":\"x\"", ``, nil},
		"unknown, pinned": {start + "A slack", `,"pinData":{"A":[{}]}`, []string{`warning: node "A", type: "slack" is not known here; only its pinned data can be used`}},
		"unknown version": {start + "A set \"typeVersion\":9.5", ``, []string{`error: node "A", typeVersion: 9.5 is not among the known versions of set: 1, 3.4`}},
		"version no number": {start + "A set \"typeVersion\":\"new\"", ``,
			[]string{`error: node "A", typeVersion: is the text "new", want a number`}},
		"bad values": {start + `A set "onError":"explode","timeout":-1,"waitBetweenTries":-5,"pool":"a.b"`, ``, []string{
			`error: node "A", onError: "explode" is none of stopWorkflow, continueRegularOutput, continueErrorOutput`,
			`error: node "A", timeout: is -1; want milliseconds, or 0 for none`,
			`error: node "A", waitBetweenTries: is -5; want milliseconds`,
			`error: node "A", pool: "a.b" may hold only letters, digits, - and _`,
		}},
		"unreadable values": {start + `A set "maxTries":"many","disabled":{},"parameters":"x"`, ``, []string{
			`error: node "A", maxTries: is the text "many", want a number`,
			`error: node "A", disabled: is an object, want true or false`,
			`error: node "A", parameters: is the text "x", want an object`,
		}},
		"bad settings": {start, `,"settings":{"executionOrder":"v2","toolExecution":"random","timezone":"Mars/Base","executionTimeout":"long","maxRunsPerNode":"many"}`, []string{
			`warning: settings.executionOrder: "v2" is neither v0 nor v1; it runs as v0, as in n8n`,
			`error: settings.toolExecution: "random" is neither parallel nor sequential`,
			`error: settings.timezone: "Mars/Base" is no time zone; want a name such as Europe/Berlin`,
			`error: settings.executionTimeout: is the text "long", want a number of seconds`,
			`error: settings.maxRunsPerNode: is the text "many", want a number`,
		}},
		"half an execution": {start, `,"settings":{"maxConcurrency":0.5}`, []string{
			`error: settings.maxConcurrency: 0.5 is not a number of executions from 1 to 1000000, or 0 for the coordinators' limit`,
		}},
		"fewer than none": {start, `,"settings":{"maxConcurrency":-1}`, []string{
			`error: settings.maxConcurrency: -1 is not a number of executions from 1 to 1000000, or 0 for the coordinators' limit`,
		}},
		"bad pinned data":  {start, `,"pinData":{"Start":[1],"Gone":7}`, []string{`error: node "Start", pinData: item 0 is 1, want an object`, `error: node "Gone", pinData: is 7, want a list of items`}},
		"no model":         {start + "Agent agent\nStart -main-> Agent", ``, []string{`error: node "Agent", ai_languageModel: a Chat Model must be connected and enabled`}},
		"model disabled":   {start + "Agent agent\nModel model \"disabled\":true\nStart -main-> Agent\nModel -ai_languageModel-> Agent", ``, []string{`error: node "Agent", ai_languageModel: a Chat Model must be connected and enabled`}},
		"agent aside":      {start + "Agent agent", ``, []string{`warning: node "Agent", ai_languageModel: a Chat Model must be connected and enabled`}},
		"agent pinned":     {start + "Agent agent\nStart -main-> Agent", `,"pinData":{"Agent":[{}]}`, nil},
		"tool needs model": {agent + "Sub agentTool\nSub -ai_tool-> Agent", ``, []string{`error: node "Sub", ai_languageModel: a Chat Model must be connected and enabled`}},
		"tool aside":       {agent + "Calc calculator", ``, []string{`warning: node "Calc", connections: is a tool that is connected to nothing`}},
		"tool in flow":     {start + "Calc calculator\nStart -main-> Calc", ``, nil},
		"tool misplaced":   {start + "A set\nCalc calculator\nStart -main-> A\nCalc -ai_tool-> A", ``, []string{`error: node "Calc", connections.ai_tool: is attached to "A" (set), which takes no tools`}},
		"no tool":          {agent + "A set\nA -ai_tool-> Agent", ``, []string{`error: node "A", connections.ai_tool: set cannot be used as a tool`}},
		"model misplaced":  {start + "A set\nModel model\nStart -main-> A\nModel -ai_languageModel-> A", ``, []string{`warning: node "Model", connections.ai_languageModel: is attached to "A" (set), which takes no ai_languageModel`}},
		"memory accepted":  {agent + "Mem memory\nMem -ai_memory-> Agent", ``, nil},
		"model aside":      {agent + "Model2 model", ``, []string{`warning: node "Model2", connections: is connected to nothing and never used`}},
		"link to nothing":  {start + "Start -main-> Gone", ``, []string{`warning: node "Start", connections.main[0]: links to "Gone", which is not in the workflow; it fails if the run comes there`}},
		"link of nothing":  {start + "Gone -main-> Start", ``, []string{`warning: node "Gone", connections: there is no node of this name; its connections are ignored`}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range Validate(build(t, row.lines, row.rest), known) {
				got = append(got, string(p.Severity)+": "+p.String())
			}
			assert.Equal(t, row.want, got)
		})
	}
}

func TestValidateStart(t *testing.T) {
	w := build(t, "A set\nAgent agent\nA -main-> Agent", "")
	assert.ErrorContains(t, Validate(w, known).Err(), ErrNoStart.Error())
	assert.EqualError(t, ValidateStart(w, known, "A").Err(),
		`invalid workflow: node "Agent", ai_languageModel: a Chat Model must be connected and enabled`,
		"what lies behind the named start is checked")
	assert.ErrorContains(t, ValidateStart(w, known, "B").Err(), `there is no node "B" to start from`)
}

func TestProblemsErr(t *testing.T) {
	assert.NoError(t, Problems{{Severity: SeverityWarning, Message: "x"}}.Err())
	err := Problems{
		{SeverityError, "A", "type", "is odd"}, {SeverityWarning, "A", "", "is large"}, {SeverityError, "", "", "too late"},
	}.Err()
	assert.EqualError(t, err, "invalid workflow, 2 problems:\n  - node \"A\", type: is odd\n  - too late")
	var invalid *InvalidError
	require.ErrorAs(t, err, &invalid)
	assert.Len(t, invalid.Problems, 2)
}

func TestStart(t *testing.T) {
	for name, row := range map[string]struct{ lines, want string }{
		"none":                     {"A set\nB set", ""},
		"only node":                {"A set", "A"},
		"only node with its model": {"Agent agent\nModel model\nModel -ai_languageModel-> Agent", "Agent"},
		"file order":               {"A set\nW webhook\nV webhook", "W"},
		"manual first":             {"W webhook\nC " + chatTrigger + "\nM " + manualTrigger, "M"},
		"then chat":                {"W webhook\nC " + chatTrigger, "C"},
		"disabled does not count":  {"M " + manualTrigger + " \"disabled\":true\nW webhook\nA set", "W"},
		"all triggers disabled":    {"M " + manualTrigger + " \"disabled\":true\nA set\nB set", ""},
		"error trigger last":       {"E " + errorTrigger + "\nW webhook", "W"},
		"tests after the rest":     {"T " + evalTrigger + "\nE " + errorTrigger + "\nW webhook", "W"},
		"tests before errors":      {"E " + errorTrigger + "\nT " + evalTrigger, "T"},
		"error trigger alone":      {"E " + errorTrigger + "\nA set", "E"},
		"unknown trigger":          {"A set\nT slackTrigger", "T"},
		"notes":                    {"N " + StickyNote + "\nA set", "A"},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := build(t, row.lines, "").Start(known)
			if row.want == "" {
				assert.ErrorIs(t, err, ErrNoStart)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, row.want, n.Name)
		})
	}
}

// TestFixtures reads whole files, such as people bring, and states all that is
// said about them.
func TestFixtures(t *testing.T) {
	for file, want := range map[string][]string{
		"template.json": nil,
		"messy.json": {
			`warning: settings.executionOrder: "V1" is neither v0 nor v1; it runs as v0, as in n8n`,
			`warning: node "Prepare", connections.main[1]: links to "Removed", which is not in the workflow; it fails if the run comes there`,
			`error: node "Post", type: "n8n-nodes-base.slack" is not known here; disable the node, replace it or pin its data`,
			`warning: node "Removed", connections: there is no node of this name; its connections are ignored`,
		},
	} {
		t.Run(file, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", file))
			require.NoError(t, err)
			w, err := Parse(data)
			require.NoError(t, err)
			var got []string
			for _, p := range Validate(w, known) {
				got = append(got, string(p.Severity)+": "+p.String())
			}
			assert.Equal(t, want, got)
			n, err := w.Start(known)
			require.NoError(t, err)
			assert.Equal(t, "Start", n.Name)
			assert.Equal(t, [][]Target{{{"Prepare", Main, 0}}}, w.Targets("Start", Main))
		})
	}
}
