package ai

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
)

const (
	withParser = `{"promptType":"define","text":"={{ $json.q }}","hasOutputParser":true}`
	parserWire = `,"Parser":{"ai_outputParser":[[{"node":"Agent","type":"ai_outputParser","index":0}]]}`
)

func parserNode(parameters string) string {
	return `,{"name":"Parser","type":"@n8n/n8n-nodes-langchain.outputParserStructured","typeVersion":1.3,"position":[0,0],"parameters":` + parameters + `}`
}

func TestStructuredAnswers(t *testing.T) {
	const example = `{"jsonSchemaExample":"{\"name\":\"x\",\"tags\":[{\"n\":1}]}"}`
	const manual = `{"schemaType":"manual","inputSchema":"{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}},\"required\":[\"n\"]}"}`
	for name, tt := range map[string]struct{ parser, answer, want, problem string }{
		"handed in":      {example, calling(oneCall("1", formatTool, `{"output":{"name":"a","tags":[{"n":2}]}}`)), `{"output":{"name":"a","tags":[{"n":2}]}}`, ""},
		"beside a tool":  {example, calling(oneCall("0", "Calculator", `{"input":"1"}`), oneCall("1", formatTool, `{"output":{"name":"a","tags":[]}}`)), `{"output":{"name":"a","tags":[]}}`, ""},
		"unwrapped":      {example, calling(oneCall("1", formatTool, `{"name":"a","tags":[]}`)), `{"output":{"name":"a","tags":[]}}`, ""},
		"extra members":  {example, calling(oneCall("1", formatTool, `{"output":{"name":"a","tags":[{"n":1,"m":2}],"more":1}}`)), `{"output":{"name":"a","tags":[{"n":1}]}}`, ""},
		"text":           {manual, saying(`{"n":1}`), `{"output":{"n":1}}`, ""},
		"fenced text":    {manual, saying("Here:\n```json\n{\"output\":{\"n\":1}}\n```\n"), `{"output":{"n":1}}`, ""},
		"JSON in text":   {manual, saying(`It is {"n":1}.`), `{"output":{"n":1}}`, ""},
		"missing member": {example, calling(oneCall("1", formatTool, `{"output":{"name":"a"}}`)), "", `"tags" is missing`},
		"wrong type":     {manual, saying(`{"n":"one"}`), "", `"n" must be integer, not string`},
		"no JSON":        {manual, saying(`one`), "", "it is no JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			server := chat(t, func(string) string { return tt.answer })
			p := newPlay(t, document(withParser, chatModelA, parserNode(tt.parser), parserWire), server.URL)
			result, err := p.run("Agent", nodestest.Items(`{"q":"x"}`), nil)
			require.NoError(t, err)
			require.Len(t, p.subRuns["Parser"], 1)
			if tt.problem != "" {
				require.Equal(t, "Model output doesn't fit required format", result.Error.Message)
				require.Equal(t, tt.problem, result.Error.Description)
				require.NotNil(t, p.subRuns["Parser"][0].Error)
				return
			}
			require.Nil(t, result.Error)
			require.Equal(t, tt.want, outputs(result)[0])
			require.Equal(t, `{"action":"parse","response":`+tt.want+`}`, string(p.subRuns["Parser"][0].Output[0][0].JSON))
			shown := gjson.Get(server.bodies[0], "tools.2.function")
			require.Equal(t, formatTool, shown.Get("name").Str)
			require.True(t, shown.Get("parameters.properties.output").Exists())
		})
	}
}

func TestParserIsLeftOutUnlessAskedFor(t *testing.T) {
	server := chat(t, func(string) string { return saying("plain") })
	p := newPlay(t, document(fromPrompt, chatModelA, parserNode(`{"jsonSchemaExample":"{}"}`), parserWire), server.URL)
	result, err := p.run("Agent", nodestest.Items(`{"q":"x"}`), nil)
	require.NoError(t, err)
	require.Equal(t, []string{`{"output":"plain"}`}, outputs(result))
}

func TestParserRepairsWithItsOwnModel(t *testing.T) {
	server := chat(t, func(body string) string {
		if gjson.Get(body, "model").Str == "fixer" {
			return saying("```\n{\"n\":7}\n```")
		}
		return saying("seven")
	})
	fixer := parserNode(`{"autoFix":true,"jsonSchemaExample":"{\"n\":1}"}`) +
		`,{"name":"Fixer","type":"@n8n/n8n-nodes-langchain.lmChatOpenAi","typeVersion":1,"position":[0,0],"parameters":{"model":"fixer"},"credentials":{"openAiApi":{"id":"1","name":"x"}}}`
	p := newPlay(t, document(withParser, chatModelA, fixer, parserWire+`,"Fixer":{"ai_languageModel":[[{"node":"Parser","type":"ai_languageModel","index":0}]]}`), server.URL)
	result, err := p.run("Agent", nodestest.Items(`{"q":"x"}`), nil)
	require.NoError(t, err)
	require.Nil(t, result.Error)
	require.Equal(t, []string{`{"output":{"n":7}}`}, outputs(result))
	require.Len(t, p.subRuns["Fixer"], 1)
	require.Contains(t, server.bodies[1], "seven")
}

func TestBrokenSchemas(t *testing.T) {
	for parameters, want := range map[string]string{
		`{"jsonSchemaExample":"{oops"}`:                                               "The parameter jsonSchemaExample of Parser is not valid JSON",
		`{"schemaType":"manual","inputSchema":"{\"type\":5}"}`:                        "The schema of Parser is not a JSON schema",
		`{"schemaType":"manual","inputSchema":"{\"$ref\":\"file:///etc/passwd\"}"}`:   "The schema of Parser is not a JSON schema",
		`{"schemaType":"manual","inputSchema":"{\"$ref\":\"http://127.0.0.1:1/x\"}"}`: "The schema of Parser is not a JSON schema",
	} {
		p := newPlay(t, document(withParser, chatModelA, parserNode(parameters), parserWire), "http://127.0.0.1:1")
		_, err := p.run("Agent", nodestest.Items(`{"q":"x"}`), nil)
		require.EqualError(t, err, want, parameters)
	}
}

func TestPlainJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{ "a" : "\u003cb\u003e \u0026" }`: `{"a":"<b> &"}`,
		`{"a":"\\u003c"}`:                  `{"a":"\\u003c"}`,
		`{"a":"\\\u003c\u00e9"}`:           `{"a":"\\<\u00e9"}`,
	} {
		require.Equal(t, want, string(plainJSON([]byte(in))))
		require.Equal(t, gjson.Get(in, "a").Str, gjson.Get(string(plainJSON([]byte(in))), "a").Str)
	}
	require.Equal(t, "no JSON", string(plainJSON([]byte("no JSON"))))
	require.Equal(t, `"ä…"`, jsonobject.Quote(shortened("äöü", 3)))
}
