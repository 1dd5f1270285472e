package workflow

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mustParse parses a document that must be readable.
func mustParse(t testing.TB, doc string) *Workflow {
	t.Helper()
	w, err := Parse([]byte(doc))
	require.NoError(t, err)
	return w
}

func TestParseNodeFields(t *testing.T) {
	for name, row := range map[string]struct {
		node string
		want Node
	}{
		"as exported": {
			`{"id":"a1","name":"A","type":"t","typeVersion":3.4,"position":[10,-20.5],"parameters":{"b":1,"a":2}}`,
			Node{ID: "a1", TypeVersion: 3.4, Position: [2]float64{10, -20.5}, Parameters: json.RawMessage(`{"b":1,"a":2}`)},
		},
		"absent fields":         {`{"name":"A","type":"t"}`, Node{TypeVersion: 1}},
		"null fields":           {`{"name":"A","type":"t","id":null,"typeVersion":null,"position":null,"parameters":null,"credentials":null,"disabled":null}`, Node{TypeVersion: 1}},
		"version is a text":     {`{"name":"A","type":"t","typeVersion":"2.1"}`, Node{TypeVersion: 2.1}},
		"id is a number":        {`{"name":"A","type":"t","id":12}`, Node{ID: "12", TypeVersion: 1}},
		"position of texts":     {`{"name":"A","type":"t","position":["7","8.5"]}`, Node{TypeVersion: 1, Position: [2]float64{7, 8.5}}},
		"position is an object": {`{"name":"A","type":"t","position":{"x":1,"y":2}}`, Node{TypeVersion: 1, Position: [2]float64{1, 2}}},
		"position too short":    {`{"name":"A","type":"t","position":[7]}`, Node{TypeVersion: 1, Position: [2]float64{7, 0}}},
		"position too long":     {`{"name":"A","type":"t","position":[7,8,9]}`, Node{TypeVersion: 1, Position: [2]float64{7, 8}}},
		"parameters as list":    {`{"name":"A","type":"t","parameters":[]}`, Node{TypeVersion: 1}},
		"retry settings as texts": {
			`{"name":"A","type":"t","retryOnFail":"true","maxTries":"4","waitBetweenTries":"1500","timeout":"200","executeOnce":1}`,
			Node{TypeVersion: 1, RetryOnFail: true, MaxTries: 4, WaitBetweenTries: 1500, Timeout: 200, ExecuteOnce: true},
		},
		"all flags": {
			`{"name":"A","type":"t","disabled":true,"alwaysOutputData":true,"onError":"continueErrorOutput","continueOnFail":true,"webhookId":"w","pool":"gpu"}`,
			Node{TypeVersion: 1, Disabled: true, AlwaysOutputData: true, OnError: OnErrorOutput, ContinueOnFail: true, WebhookID: "w", Pool: "gpu"},
		},
		"credentials": {
			`{"name":"A","type":"t","credentials":{"x":{"id":"1","name":"X"},"old":"My Slack","nul":{"id":null,"name":"N"},"num":{"id":7},"none":null}}`,
			Node{TypeVersion: 1, Credentials: map[string]CredentialRef{
				"x": {ID: "1", Name: "X"}, "old": {Name: "My Slack"}, "nul": {Name: "N"}, "num": {ID: "7"},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := mustParse(t, `{"nodes":[`+row.node+`],"connections":{}}`)
			row.want.Name, row.want.Type = "A", "t"
			if row.want.Parameters == nil {
				row.want.Parameters = json.RawMessage("{}")
			}
			require.Len(t, w.Nodes, 1)
			assert.Equal(t, row.want, *w.Nodes[0])
			assert.Same(t, w.Nodes[0], w.Node("A"))
			assert.Empty(t, w.problems)
		})
	}
}

func TestParseSettings(t *testing.T) {
	for name, row := range map[string]struct {
		settings string
		want     Settings
	}{
		"absent":        {``, Settings{}},
		"null":          {`,"settings":null`, Settings{}},
		"a text":        {`,"settings":"none"`, Settings{}},
		"a list":        {`,"settings":[]`, Settings{}},
		"inside a text": {`,"settings":"{\"executionOrder\":\"v1\"}"`, Settings{ExecutionOrder: "v1"}},
		"all": {`,"settings":{"executionOrder":"v1","toolExecution":"sequential","timezone":"Europe/Berlin","errorWorkflow":"e1","executionTimeout":"60","maxRunsPerNode":"500","onWorkerLost":"giveUp","maxConcurrency":"3"}`, Settings{
			ExecutionOrder: "v1", ToolExecution: "sequential", ErrorWorkflow: "e1", Timezone: "Europe/Berlin",
			ExecutionTimeout: 60, MaxRunsPerNode: 500, OnWorkerLost: WorkerLostGiveUp, MaxConcurrency: 3,
		}},
		"n8n's defaults": {`,"settings":{"timezone":"DEFAULT","errorWorkflow":"DEFAULT","executionTimeout":-1}`, Settings{ExecutionTimeout: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			w := mustParse(t, `{"nodes":[]`+row.settings+`}`)
			assert.Equal(t, row.want, w.Settings)
			assert.Equal(t, row.want.ExecutionOrder == "v1", w.V1())
		})
	}
}

func TestParseWrappers(t *testing.T) {
	const doc = `{"id":"w1","name":"Inner","nodes":[{"name":"A","type":"t"}],"connections":{}}`
	for name, row := range map[string]struct{ given, id, title string }{
		"bare":                    {doc, "w1", "Inner"},
		"byte order mark":         {"\xef\xbb\xbf \n" + doc, "w1", "Inner"},
		"list of one":             {`[` + doc + `]`, "w1", "Inner"},
		"workflow":                {`{"workflow":` + doc + `}`, "w1", "Inner"},
		"data":                    {`{"data":` + doc + `}`, "w1", "Inner"},
		"data list":               {`{"data":[` + doc + `],"nextCursor":null}`, "w1", "Inner"},
		"template with its types": {`{"workflow":{"id":9,"name":"Outer","nodes":[{"id":1,"icon":"x","name":"n8n-nodes-base.set"}],"workflow":{"nodes":[{"name":"A","type":"t"}]}}}`, "9", "Outer"},
		"execution export":        {`{"id":"5","data":{"resultData":{}},"workflowData":` + doc + `}`, "w1", "Inner"},
		"database row":            {`{"id":"w2","name":"Row","nodes":"[{\"name\":\"A\",\"type\":\"t\"}]","connections":"{}"}`, "w2", "Row"},
	} {
		t.Run(name, func(t *testing.T) {
			w := mustParse(t, row.given)
			assert.NotNil(t, w.Node("A"))
			assert.Equal(t, row.id, w.ID)
			assert.Equal(t, row.title, w.Name)
		})
	}
}

func TestParseErrors(t *testing.T) {
	for name, row := range map[string]struct{ given, want string }{
		"empty":              {" \n", "not JSON: line 1, column 1: the document is empty"},
		"web page":           {"<!DOCTYPE html>\n<html>", "not JSON: line 1, column 1: the document is a web page or XML, not a workflow file"},
		"UTF-16":             {"\xff\xfe{\x00}\x00", "not JSON: line 1, column 1: the document is UTF-16 text, save it as UTF-8"},
		"comma too many":     {"{\n  \"nodes\": [],\n}", `not JSON: line 3, column 1: invalid character '}' looking for beginning of object key string, at "}"`},
		"column in letters":  {`{"näme": x}`, `not JSON: line 1, column 10: invalid character 'x' looking for beginning of value, at "x}"`},
		"cut off":            {"{\"nodes\": [\n{", "not JSON: line 2, column 2: the document ends too early; it may have been cut off"},
		"text":               {`"hello"`, `not a workflow: it is the text "hello", want an object with a list of nodes`},
		"no nodes":           {`{"name":"x","steps":[]}`, `not a workflow: it has no "nodes" list (it has the keys "name", "steps")`},
		"nothing":            {`{}`, `not a workflow: it has no "nodes" list (it has no keys at all)`},
		"many keys":          {`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1}`, `not a workflow: it has no "nodes" list (it has the keys "a", "b", "c", "d", "e", "f", …)`},
		"nodes by name":      {`{"nodes":{"A":{}}}`, `not a workflow: "nodes" is an object, want a list`},
		"node is a text":     {`{"nodes":[null,"A"]}`, `not a workflow: nodes[1] is the text "A", want an object`},
		"several workflows":  {`{"data":[{"nodes":[]},{"nodes":[]}]}`, `not a workflow but a list of 2 documents: give one of them at a time`},
		"no workflows":       {`[]`, `not a workflow but a list of 0 documents: give one of them at a time`},
		"lists of lists":     {`[[[[[[{"nodes":[]}]]]]]]`, `not a workflow: it is wrapped too deeply`},
		"trailing text":      {"{\"nodes\":[]}\nhello", `not JSON: line 2, column 1: invalid character 'h' after top-level value, at "hello"`},
		"empty after a mark": {"\xef\xbb\xbf", "not JSON: line 1, column 1: the document is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(row.given))
			assert.EqualError(t, err, row.want)
		})
	}
}

func TestParseConnections(t *testing.T) {
	nodes := `"nodes":[{"name":"A","type":"t","id":"id-a"},{"name":"B","type":"t"},{"name":"C","type":"t"},
		{"name":"Note","type":"n8n-nodes-base.stickyNote"}]`
	b0, c1 := Target{"B", Main, 0}, Target{"C", Main, 1}
	for name, row := range map[string]struct {
		connections string
		out         [][]Target // of A
		inB, inC    [][]Origin
		problems    []string
	}{
		"plain":              {`{"A":{"main":[[{"node":"B","type":"main","index":0},{"node":"C","type":"main","index":1}]]}}`, [][]Target{{b0, c1}}, [][]Origin{{{"A", 0}}}, [][]Origin{nil, {{"A", 0}}}, nil},
		"null slots":         {`{"A":{"main":[null,[null,{"node":"B","type":"main","index":0}],null]}}`, [][]Target{nil, {b0}}, [][]Origin{{{"A", 1}}}, nil, nil},
		"no type, no index":  {`{"A":{"main":[[{"node":"B"}]]}}`, [][]Target{{b0}}, [][]Origin{{{"A", 0}}}, nil, nil},
		"index is a text":    {`{"A":{"main":[[{"node":"C","type":"main","index":"1"}]]}}`, [][]Target{{c1}}, nil, [][]Origin{nil, {{"A", 0}}}, nil},
		"target missing":     {`{"A":{"main":[[{"node":"X","type":"main","index":0}]]}}`, [][]Target{{{"X", Main, 0}}}, nil, nil, []string{`node "A", connections.main[0]: links to "X", which is not in the workflow; it fails if the run comes there`}},
		"target by id":       {`{"B":{"main":[[{"node":"id-a","type":"main","index":0}]]}}`, nil, nil, nil, []string{`node "B", connections.main[0]: links to "id-a", which is not in the workflow; it fails if the run comes there (it is the id of "A"; connections go by name)`}},
		"source missing":     {`{"X":{"main":[[{"node":"B","type":"main","index":0}]]}}`, nil, nil, nil, []string{`node "X", connections: there is no node of this name; its connections are ignored`}},
		"source gone, empty": {`{"X":{"main":[[]]},"Y":{}}`, nil, nil, nil, nil},
		"sticky notes":       {`{"Note":{"main":[[{"node":"B","type":"main","index":0}]]},"A":{"main":[[{"node":"Note","type":"main","index":0}]]}}`, [][]Target{{{"Note", Main, 0}}}, nil, nil, nil},
		"null everywhere":    {`{"A":null,"B":{"main":null}}`, nil, nil, nil, nil},
		"a list":             {`[]`, nil, nil, nil, nil},
		"a number":           {`3`, nil, nil, nil, []string{`connections: is 3, want an object by node name`}},
		"a level missing":    {`{"A":{"main":[{"node":"B"}]}}`, nil, nil, nil, []string{`node "A", connections.main[0]: is an object, want a list of links`}},
		"outputs an object":  {`{"A":{"main":{"0":[]}}}`, nil, nil, nil, []string{`node "A", connections.main: is an object, want a list by output`}},
		"index too large":    {`{"A":{"main":[[{"node":"B","index":2000000000}]]}}`, nil, nil, nil, []string{`node "A", connections.main[0]: links to input 2000000000 of "B", want a number from 0`}},
		"index negative":     {`{"A":{"main":[[{"node":"B","index":-1}]]}}`, nil, nil, nil, []string{`node "A", connections.main[0]: links to input -1 of "B", want a number from 0`}},
		"link is a text":     {`{"A":{"main":[["B"]]}}`, nil, nil, nil, []string{`node "A", connections.main[0]: has a link that names no node: "B"`}},
	} {
		t.Run(name, func(t *testing.T) {
			w := mustParse(t, `{`+nodes+`,"connections":`+row.connections+`}`)
			assert.Equal(t, row.out, w.Targets("A", Main))
			assert.Equal(t, row.inB, w.Origins("B", Main))
			assert.Equal(t, row.inC, w.Origins("C", Main))
			var problems []string
			for _, p := range w.problems {
				problems = append(problems, p.String())
			}
			assert.Equal(t, row.problems, problems)
		})
	}
}

func TestSubNodesInFileOrder(t *testing.T) {
	w := mustParse(t, `{"nodes":[{"name":"Agent","type":"a"},{"name":"T1","type":"t"},{"name":"T2","type":"t"},{"name":"T3","type":"t","disabled":true},{"name":"T0","type":"t"}],
		"connections":{"T2":{"ai_tool":[[{"node":"Agent","type":"ai_tool","index":0}]]},
			"T3":{"ai_tool":[[{"node":"Agent","type":"ai_tool","index":0}]]},
			"T0":{"ai_tool":[[{"node":"Agent","type":"ai_tool","index":0}]]},
			"T1":{"ai_tool":[[{"node":"Agent","type":"ai_tool","index":0}]]}}}`)
	var names []string
	for _, n := range w.SubNodes("Agent", Tool) {
		names = append(names, n.Name)
	}
	assert.Equal(t, []string{"T2", "T0", "T1"}, names, "the order of the connections object, without disabled ones")
}

func TestAncestors(t *testing.T) {
	w := mustParse(t, `{"nodes":[{"name":"A","type":"t"},{"name":"B","type":"t"},{"name":"C","type":"t"},{"name":"D","type":"t"}],
		"connections":{"A":{"main":[[{"node":"B"}]]},"B":{"main":[[{"node":"C"}]]},"C":{"main":[[{"node":"B"}],[{"node":"D"}]]}}}`)
	assert.Equal(t, []string{"C", "B", "A"}, w.Ancestors("D"), "nearest first, a cycle once")
	assert.Empty(t, w.Ancestors("A"))
}

func TestParsePinData(t *testing.T) {
	for name, row := range map[string]struct{ pin, want string }{
		"items":            {`[{"json":{"a":1},"pairedItem":0},{"json":{"a":2}}]`, `[{"json":{"a":1},"pairedItem":{"item":0}},{"json":{"a":2}}]`},
		"bare objects":     {`[{"b":1,"a":2},{}]`, `[{"json":{"b":1,"a":2}},{"json":{}}]`},
		"json as a field":  {`[{"json":"text","x":1}]`, `[{"json":{"json":"text","x":1}}]`},
		"one object":       {`{"a":1}`, `[{"json":{"a":1}}]`},
		"null items":       {`[null,{"a":1}]`, `[{"json":{"a":1}}]`},
		"nothing":          {`[]`, `[]`},
		"files":            {`[{"json":null,"binary":{"f":{"mimeType":"text/plain","data":"aGk=","fileSize":2}}}]`, `[{"json":{},"binary":{"f":{"mimeType":"text/plain","fileSize":"2","data":"aGk="}}}]`},
		"lineage is wrong": {`[{"json":{},"pairedItem":"x"}]`, `[{"json":{}}]`},
		"item error":       {`[{"json":{},"error":{"message":"no"}}]`, `[{"json":{},"error":{"message":"no"}}]`},
	} {
		t.Run(name, func(t *testing.T) {
			w := mustParse(t, `{"nodes":[],"pinData":{"A":`+row.pin+`,"B":null}}`)
			got, err := json.Marshal(w.PinData["A"])
			require.NoError(t, err)
			assert.Equal(t, row.want, string(got))
			assert.NotContains(t, w.PinData, "B")
			assert.Empty(t, w.problems)
		})
	}
}

func TestParseItemsErrors(t *testing.T) {
	for name, row := range map[string]struct{ given, want string }{
		"no JSON":     {`{a:1}`, `not JSON: line 1, column 2: invalid character 'a' looking for beginning of object key string, at "a:1}"`},
		"a number":    {`3`, `is 3, want a list of items`},
		"a text item": {`[{},"x"]`, `item 1 is the text "x", want an object`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseItems([]byte(row.given))
			assert.EqualError(t, err, row.want)
		})
	}
}

func TestHashSurvivesTransport(t *testing.T) {
	given := "\xef\xbb\xbf{ \"nodes\": [ {\"name\": \"a<b>&\u2028\", \"type\": \"t\"} ] }\n"
	w := mustParse(t, given)
	// A message embeds the document as a json.RawMessage, which drops spaces and
	// escapes characters.
	sent, err := json.Marshal(map[string]any{"doc": w.Raw})
	require.NoError(t, err)
	var received struct{ Doc json.RawMessage }
	require.NoError(t, json.Unmarshal(sent, &received))
	require.NotEqual(t, string(w.Raw), string(received.Doc))
	assert.Equal(t, w.Hash, mustParse(t, string(received.Doc)).Hash)
	assert.Len(t, w.Hash, 64)
	assert.NotEqual(t, w.Hash, mustParse(t, `{"nodes":[]}`).Hash)
}

func TestParseKeepsItsOwnCopy(t *testing.T) {
	given := []byte(`{"nodes":[{"name":"A","type":"t","parameters":{"x":1}}],"pinData":{"A":[{"y":2}]}}`)
	w, err := Parse(given)
	require.NoError(t, err)
	for i := range given {
		given[i] = ' '
	}
	assert.JSONEq(t, `{"x":1}`, string(w.Node("A").Parameters))
	assert.JSONEq(t, `{"y":2}`, string(w.PinData["A"][0].JSON))
	assert.True(t, json.Valid(w.Raw))
}
