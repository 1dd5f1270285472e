package text

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

func TestXMLToJSON(t *testing.T) {
	for _, row := range []struct{ name, xml, options, want string }{
		{"text", "<a>x &amp; y</a>", `{}`, `{"a":"x & y"}`},
		{"declaration, comments, doctype", "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><!DOCTYPE a><!-- c --><a>ü</a><!-- d -->", `{}`, `{"a":"ü"}`},
		{"byte order mark", "\ufeff\n<a/>", `{}`, `{"a":""}`},
		{"lists", "<a><b>1</b><c/><b>2</b></a>", `{}`, `{"a":{"b":["1","2"],"c":""}}`},
		{"always lists", "<a x='1'><b>1</b></a>", `{"explicitArray":true}`, `{"a":{"x":["1"],"b":["1"]}}`},
		{"attributes apart", "<a x='1'><b/></a>", `{"mergeAttrs":false}`, `{"a":{"$":{"x":"1"},"b":""}}`},
		{"attributes under another key", "<a x='1'>t</a>", `{"mergeAttrs":false,"attrkey":"@","charkey":"#"}`, `{"a":{"#":"t","@":{"x":"1"}}}`},
		{"attributes ignored", "<a x='1'>t</a>", `{"ignoreAttrs":true}`, `{"a":"t"}`},
		{"attribute and element of one name", "<a b='1'><b>2</b></a>", `{}`, `{"a":{"b":["1","2"]}}`},
		{"mixed", "<a>x<b>y</b>z</a>", `{}`, `{"a":{"_":"xz","b":"y"}}`},
		{"CDATA", "<a><![CDATA[<b> & ]]></a>", `{}`, `{"a":"<b> & "}`},
		{"white space between elements", "<a>\n  <b>1</b>\n</a>", `{}`, `{"a":{"b":"1"}}`},
		{"trim", "<a><b>  x  y </b></a>", `{"trim":true}`, `{"a":{"b":"x  y"}}`},
		{"normalize", "<a><b>  x \n y </b></a>", `{"normalize":true}`, `{"a":{"b":"x y"}}`},
		{"lower case", "<A><B/></A>", `{"normalizeTags":true}`, `{"a":{"b":""}}`},
		{"prefixes", "<s:a xmlns:s='u'><s:b s:c='1'/></s:a>", `{}`, `{"s:a":{"xmlns:s":"u","s:b":{"s:c":"1"}}}`},
		{"without the root", "<a><b>1</b></a>", `{"explicitRoot":false}`, `{"b":"1"}`},
		{"without a root that is text", "<a>1</a>", `{"explicitRoot":false}`, `{"a":"1"}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, failure := run(t, XML(), `{"options":`+row.options+`}`, nodestest.Items(`{"data":`+jsonobject.Quote(row.xml)+`}`), nil)
			require.Nil(t, failure)
			require.Equal(t, row.want, got)
		})
	}
}

func TestXMLThatCannotBeRead(t *testing.T) {
	for xml, description := range map[string]string{
		"<r><i></r>":                "</r> closes no element",
		"<r>":                       "<r> is not closed",
		"<r/><r/>":                  "there is a second root element, <r>",
		"<r/>x":                     "there is text outside of the root element",
		"x<r/>":                     "there is text outside of the root element",
		"":                          "there is no element",
		"<r>&nope;</r>":             "invalid character entity &nope;",
		"<r a=1/>":                  "unquoted or missing attribute value",
		"<r></r></r>":               "</r> closes no element",
		strings.Repeat("<a>", 1001): "nested more than 1000 deep",
		"<r>\n  <s>\n</r>":          "line 3, column 5: </r> closes no element",
		"<!DOCTYPE r [<!ENTITY e 'x'>]><r>&e;</r>": "invalid character entity &e;",
	} {
		items := nodestest.Items(`{"data":`+jsonobject.Quote(xml)+`}`, `{"data":"<ok/>"}`)
		_, failure := run(t, XML(), `{}`, items, nil)
		require.NotNil(t, failure, xml)
		require.Equal(t, "The XML cannot be read", failure.Message)
		require.Contains(t, failure.Description, description, xml)
		// The item is left out when the node goes on, and kept for an output of errors.
		got, failure := run(t, XML(), `{}`, items, func(c *node.Call) { c.Node.OnError = workflow.OnErrorContinue })
		require.Nil(t, failure)
		require.Equal(t, `{"ok":""}`, got)
		got, failure = run(t, XML(), `{}`, items, func(c *node.Call) { c.Node.OnError = workflow.OnErrorOutput })
		require.Nil(t, failure)
		require.Equal(t, `{"error":"The XML cannot be read"}`+"\n"+`{"ok":""}`, got)
	}
	_, failure := run(t, XML(), `{"dataPropertyName":"x.y"}`, nodestest.Items(`{}`), nil)
	require.Equal(t, `Item has no property "x.y"`, failure.Message)
	_, failure = run(t, XML(), `{"mode":"yaml"}`, nodestest.Items(`{}`), nil)
	require.Equal(t, `"yaml" is not supported`, failure.Message)
}

func TestJSONToXML(t *testing.T) {
	const head = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"
	for _, row := range []struct{ name, json, options, want string }{
		{"one field is the root", `{"a":{"b":1}}`, `{}`, head + "<a>\n  <b>1</b>\n</a>"},
		{"a root of another name", `{"a":{"b":1}}`, `{"rootName":"x","headless":true}`, "<x>\n  <a>\n    <b>1</b>\n  </a>\n</x>"},
		{"several fields", `{"a":true,"b":null,"c":""}`, `{"headless":true}`, "<root>\n  <a>true</a>\n  <b/>\n  <c/>\n</root>"},
		{"one field with a list", `{"a":[1,2]}`, `{"headless":true}`, "<root>\n  <a>1</a>\n  <a>2</a>\n</root>"},
		{"attributes and text", `{"a":{"$":{"x":"1 \"&","y":2},"_":"t"}}`, `{"headless":true}`, `<a x="1 &quot;&amp;" y="2">t</a>`},
		{"other keys for them", `{"a":{"@":{"x":1},"#":"t"}}`, `{"headless":true,"attrkey":"@","charkey":"#"}`, `<a x="1">t</a>`},
		{"escapes", `{"a":"<b> & \"c\" ]]>"}`, `{"headless":true}`, `<a>&lt;b&gt; &amp; "c" ]]&gt;</a>`},
		{"CDATA", `{"a":{"b":"<x ]]>","c":"plain"}}`, `{"headless":true,"cdata":true}`, "<a>\n  <b><![CDATA[<x ]]]]><![CDATA[>]]></b>\n  <c>plain</c>\n</a>"},
		{"long numbers", `{"a":12345678901234567890}`, `{"headless":true}`, `<a>12345678901234567890</a>`},
		{"empty", `{}`, `{"headless":true}`, `<root/>`},
		{"emoji", `{"a":"😄"}`, `{"headless":true}`, `<a>😄</a>`},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, failure := run(t, XML(), `{"mode":"jsonToxml","dataPropertyName":"out","options":`+row.options+`}`, nodestest.Items(row.json), nil)
			require.Nil(t, failure)
			require.Equal(t, `{"out":`+plain(jsonobject.Quote(row.want))+`}`, got)
		})
	}
	for json, description := range map[string]string{
		`{"a b":1}`:              `"a b" cannot be the name of an XML element`,
		`{"a":{"$":{"1":2}}}`:    `"1" cannot be the name of an XML attribute`,
		`{"a":"\u0001"}`:         "the character U+0001 cannot be written in XML",
		`{"a":{"$":{"x":"\b"}}}`: "attribute x: the character U+0008",
	} {
		_, failure := run(t, XML(), `{"mode":"jsonToxml"}`, nodestest.Items(json), nil)
		require.NotNil(t, failure, json)
		require.Contains(t, failure.Description, description)
	}
}

// FuzzXML looks for texts that are no valid JSON when they are read, and for items that
// are no valid XML when they are written.
func FuzzXML(f *testing.F) {
	for _, seed := range []string{"<a b='1'>x<c/>y<c>z</c></a>", "<a><![CDATA[x]]></a>", "<a:b xmlns:a='u'/>", "<a>&lt;</a>"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		items := nodestest.Items(`{"data":` + jsonobject.Quote(text) + `}`)
		result, err := XML().Execute(context.Background(), nodestest.Call(XML(), `{}`, items))
		if err != nil {
			return
		}
		read := result.Outputs[0][0].JSON
		require.True(t, gjson.ValidBytes(read), "%q gives %s", text, read)
		written, err := buildXML(jsonobject.Parse(read), options{gjson.Parse(`{}`)})
		if err != nil {
			return
		}
		_, err = parseXML(written, options{gjson.Parse(`{}`)})
		require.NoError(t, err, "%q gives %s, which gives %s", text, read, written)
	})
}
