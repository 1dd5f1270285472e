package expression

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

func codeScope(n int) *Scope {
	var items workflow.Items
	for i := range n {
		raw, _ := json.Marshal(map[string]int{"n": i + 1})
		items = append(items, workflow.Item{JSON: raw, PairedItem: workflow.Paired(i)})
	}
	s := &Scope{
		Inputs: []workflow.Items{items}, Sources: from("Items"), Timezone: "Europe/Berlin",
		RunData: runData{"Items": {{outputs: []workflow.Items{items}}}},
		Nodes:   map[string]*workflow.Node{"Items": {Name: "Items"}},
	}
	s.Execution.Mode, s.Workflow.Name = "cli", "Code"
	return s
}

func TestRunCode(t *testing.T) {
	e, err := New()
	require.NoError(t, err)
	defer e.Close()
	for _, row := range []struct {
		name, source string
		item         int
		want, kind   string // the result and its type
		err, about   string // or the error and its description
	}{
		{name: "all", source: "return $input.all().map(i => ({json: {d: i.json.n * 2}}))", item: -1, want: `[{"json":{"d":2}},{"json":{"d":4}}]`, kind: "array"},
		{name: "items", source: "for (const item of items) item.json.x = 1;\nreturn items", item: -1, want: `[{"json":{"n":1,"x":1},"pairedItem":{"item":0}},{"json":{"n":2,"x":1},"pairedItem":{"item":1}}]`, kind: "array"},
		{name: "own item", source: "const item = 5; let items = 6; return item + items", item: -1, want: "11", kind: "number"},
		{name: "each", source: "return { d: $json.n * 2, i: $itemIndex }", item: 1, want: `{"d":4,"i":1}`, kind: "object"},
		{name: "each item", source: "$input.item.json.x = 1; return $input.item", item: 0, want: `{"json":{"n":1,"x":1},"pairedItem":{"item":0}}`, kind: "object"},
		{name: "first in all mode", source: "return [{ json: { n: $input.item.json.n } }]", item: -1, want: `[{"json":{"n":1}}]`, kind: "array"},
		{name: "undefined", source: "", item: -1, kind: "undefined"},
		{name: "null", source: "return null", item: -1, want: "null", kind: "null"},
		{name: "function", source: "return () => 1", item: -1, kind: "function"},
		{name: "await", source: "await new Promise(r => setTimeout(r, 5)); return 1", item: -1, want: "1", kind: "number"},
		{name: "throw", source: `throw new Error("boom")`, item: -1, err: "boom [line 1]"},
		{name: "throw in each", source: `throw new Error("boom at " + $itemIndex)`, item: 0, err: "boom at 0 [line 1]"},
		{name: "line", source: "const a = 1;\n\nfunction f() { return a.b.c; }\nreturn f();", item: -1, err: "Cannot read properties of undefined (reading 'c') [line 3]", about: "TypeError"},
		{name: "syntax", source: "return [;", item: -1, err: "Unexpected token ';'", about: "SyntaxError"},
		{name: "throw text", source: `throw "a string"`, item: -1, err: `"a string"`},
		{name: "rejected", source: "await Promise.reject(new Error('no'))", item: -1, err: "no [line 1]"},
		{name: "all in each", source: "return { l: $input.all().length }", item: 0, err: "Can't use .all() here [line 1, for item 0]", about: "This is only available in 'Run Once for All Items' mode"},
		{name: "scope", source: `return [typeof Buffer, typeof crypto, typeof fetch, typeof process, typeof require, typeof DateTime, $now.zoneName, $jmespath({a: [1, 2]}, 'a[1]'), $('Items').all().length, $node['Items'].json.n, $prevNode.name, $getWorkflowStaticData('global')]`,
			item: -1, want: `["function","undefined","undefined","undefined","function","function","Europe/Berlin",2,2,1,"Items",{}]`, kind: "array"},
		{name: "no extensions", source: "try { return ''.isEmpty() } catch (e) { return e.message }", item: -1, want: `"\"\".isEmpty is not a function"`, kind: "string"},
		{name: "unknown", source: "try { return $ifEmpty('', 1) } catch (e) { return e.message }", item: -1, want: `"$ifEmpty is not defined"`, kind: "string"},
		{name: "custom data", source: "const d = $execution.customData; d.set('k', 5); d.setAll({a: 'x\\ny', long: 'ü'.repeat(600)}); return [d.get('k'), d.getAll().a, d.getAll().long.length, $execution.mode]",
			item: -1, want: `["5","x y",512,"production"]`, kind: "array"},
		{name: "custom data of others", source: "return $execution.customData.get('other')", item: -1, want: ``, kind: "undefined"},
		{name: "custom data with a bad key", source: "$execution.customData.set('a b', 1)", item: -1, err: `The key "a b" of the execution data is not allowed [line 1]`, about: "A key is made of letters, digits and underscores."},
		{name: "env", source: "try { return $env.HOME } catch (e) { return e.message }", item: -1, want: `"access to env vars denied"`, kind: "string"},
		{name: "buffer", source: "return Buffer.from('hü').toString('base64') + Buffer.from('aMO8', 'base64').toString()", item: -1, want: `"aMO8hü"`, kind: "string"},
		{name: "url", source: "const u = new URL('https://a.example:8080/p?x=1&y=%20b#f'); u.searchParams.set('x', '2'); return [u.host, u.pathname, u.searchParams.get('y'), u.href]",
			item: -1, want: `["a.example:8080","/p"," b","https://a.example:8080/p?x=2&y=+b#f"]`, kind: "array"},
		{name: "crypto", source: "const c = require('crypto'); return [c.createHash('md5').update('abc').digest('hex'), c.createHmac('sha256', 'k').update('d').digest('base64').length, c.randomUUID().length]",
			item: -1, want: `["900150983cd24fb0d6963f7d28e17f72",44,36]`, kind: "array"},
		{name: "denied module", source: "require('fs')", item: -1, err: "Module 'fs' is disallowed [line 1]"},
		{name: "dates", source: "return [new Date(0), DateTime.fromMillis(0), NaN, undefined]", item: -1, want: `["1970-01-01T00:00:00.000Z","1970-01-01T01:00:00.000+01:00",null,null]`, kind: "array"},
		{name: "import", source: "try { await import('fs'); return 1 } catch (e) { return 'refused' }", item: -1, want: `"refused"`, kind: "string"},
		{name: "helpers", source: "const f = await this.helpers.prepareBinaryData(Buffer.from('hi'), 'a.txt'); items[0].binary = { f }; return [f, (await this.helpers.getBinaryDataBuffer(0, 'f')).toString()]",
			item: -1, want: `[{"mimeType":"text/plain","fileType":"text","fileExtension":"txt","data":"aGk=","fileName":"a.txt","fileSize":"2 B"},"hi"]`, kind: "array"},
		{name: "helper that is not there", source: "return this.helpers.httpRequest({url: 'http://a'})", item: -1, err: "this.helpers.httpRequest() is not available here [line 1]"},
		{name: "the helpers that n8n has", source: "return Object.keys(this.helpers).sort().slice(0, 20).join(' ')", item: -1, kind: "string",
			want: `"assertBinaryData binaryToBuffer binaryToString constructExecutionMetaData copyBinaryFile copyInputItems createDeferredPromise createReadStream getBinaryDataBuffer getBinaryMetadata getBinaryPath getBinaryStream getSSHClient getStoragePath httpRequest httpRequestWithAuthentication normalizeItems prepareBinaryData request requestWithAuthenticationPaginated"`},
		{name: "never", source: "await new Promise(() => {})", item: -1, err: "The script waits for a promise that never settles"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := e.RunCode(t.Context(), codeScope(2), Code{Source: row.source, Item: row.item})
			if row.err != "" {
				require.ErrorAs(t, err, new(*Error))
				require.Equal(t, row.err, err.Error())
				require.Equal(t, row.about, err.(*Error).Description)
				return
			}
			require.NoError(t, err)
			require.Equal(t, row.kind, got.Type)
			require.Equal(t, row.want, string(got.JSON))
		})
	}
}

func TestRunCodeGlobalsAndLogs(t *testing.T) {
	e, err := New()
	require.NoError(t, err)
	defer e.Close()
	s := codeScope(1)
	got, err := e.RunCode(t.Context(), s, Code{
		Source: "console.log('hello', { a: 1 }); console.error(2); $execution.customData.set('k', 'v'); return query.toUpperCase()", Item: -1,
		Globals: map[string]json.RawMessage{"query": json.RawMessage(`"tea"`)},
	})
	require.NoError(t, err)
	require.Equal(t, []string{`hello {"a":1}`, "2", "execution data: k = v"}, got.Logs)
	require.Equal(t, `"TEA"`, string(got.JSON))
	require.Equal(t, map[string]string{"k": "v"}, got.CustomData)

	s.Execution.CustomData = map[string]string{"k": "before", "other": "o"}
	got, err = e.RunCode(t.Context(), s, Code{Source: "const d = $execution.customData; const was = d.get('k'); d.set('k', 'v'); return [was, d.getAll()]", Item: -1})
	require.NoError(t, err)
	require.JSONEq(t, `["before",{"k":"v","other":"o"}]`, string(got.JSON))
	require.Equal(t, map[string]string{"k": "v"}, got.CustomData, "what was there before is not set again")
	got, err = e.RunCode(t.Context(), s, Code{Source: "for (let i = 0; i < 200; i++) $execution.customData.set('k' + i, i)", Item: -1})
	require.ErrorContains(t, err, "has 100 keys of execution data already")
	require.Len(t, got.CustomData, 98)
}
