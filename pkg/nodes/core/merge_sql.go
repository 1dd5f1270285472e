package core

import (
	"context"
	_ "embed" // AlaSQL
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

//go:embed assets/alasql.min.js
var alasql string

//go:embed merge_sql.js
var mergeScript string

// sqlScript is the whole script. AlaSQL is what n8n has too, so that queries mean the same. It makes
// JavaScript of queries, which may hold texts of strangers: it runs as a closed script, with the
// limits of code in time and memory.
var sqlScript = sync.OnceValue(func() string {
	return strings.Replace(mergeScript, "ALASQL", alasql, 1)
})

const defaultQuery = "SELECT * FROM input1 LEFT JOIN input2 ON input1.name = input2.id"

// mergesBySQL reports whether a node runs, or may run, a query: that is no work for the coordinator.
func mergesBySQL(n *workflow.Node) bool {
	mode := gjson.GetBytes(n.Parameters, "mode").Str
	return mode == "combineBySql" || strings.HasPrefix(mode, "=")
}

// combineBySQL makes an item of each row that a query over the tables input1, input2 … gives. Rows
// do not know which items they came from.
func combineBySQL(ctx context.Context, call *node.Call) (*node.Result, error) {
	query := defaultQuery
	if given, err := resolve(ctx, call, 0, parameter(call, "query"), "query"); err != nil {
		return nil, err
	} else if given.Exists() {
		query = given.String()
	}
	if call.RunScript == nil {
		return nil, errors.New("this process runs no scripts")
	}
	empty := "empty"
	if call.Node.TypeVersion < 3.2 {
		empty = "success"
	}
	empty, err := choice(ctx, call, 0, "options.emptyQueryResult", empty)
	if err != nil {
		return nil, err
	}
	script, err := call.RunScript(ctx, call, node.Script{
		Code: sqlScript(), Item: node.AllItems, Closed: true,
		Globals: map[string]json.RawMessage{"sql": sqlData(query, call)},
	})
	if err != nil {
		return nil, sqlFailure(ctx, err)
	}
	if script.Err != nil {
		return nil, sqlFailure(ctx, script.Err)
	}
	var out workflow.Items
	gjson.GetBytes(script.Value, "rows").ForEach(func(_, row gjson.Result) bool {
		out = append(out, workflow.Item{JSON: json.RawMessage(row.Raw)})
		return true
	})
	if len(out) == 0 && (empty == "success" || gjson.GetBytes(script.Value, "statement").Bool()) {
		out = workflow.Items{{JSON: json.RawMessage(`{"success":true}`)}}
	}
	return node.Outputs(out), nil
}

// sqlData are {"query": …, "inputs": [[row, …], …]}.
func sqlData(query string, call *node.Call) json.RawMessage {
	data := append([]byte(`{"query":`), jsonobject.Quote(query)...)
	data = append(data, `,"inputs":[`...)
	for n := range max(inputCount(call), len(call.Inputs)) {
		if n > 0 {
			data = append(data, ',')
		}
		data = append(data, '[')
		for i, item := range call.Input(n) {
			if i > 0 {
				data = append(data, ',')
			}
			row := item.JSON
			if len(row) == 0 {
				row = json.RawMessage("{}")
			}
			data = append(data, row...)
		}
		data = append(data, ']')
	}
	return append(data, "]}"...)
}

// lineOfScript is a place in the script and not in the query.
var lineOfScript = regexp.MustCompile(` \[line \d+\]$`)

// sqlFailure is what was wrong with a query, for people. Limits stay what they are.
func sqlFailure(ctx context.Context, err error) error {
	var failure *engine.NodeError
	if ctx.Err() != nil || !errors.As(err, &failure) || failure.Reason != "" {
		return err
	}
	return &engine.NodeError{
		Name: "NodeOperationError", Message: "The SQL query failed: " + lineOfScript.ReplaceAllString(failure.Message, ""), NotRetryable: true,
		Description: "The tables are input1, input2 and so on, in the dialect of AlaSQL.",
	}
}
