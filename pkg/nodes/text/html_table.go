package text

import (
	"context"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Styles of a table whose author has none.
const (
	tableStyle  = ` style='border-spacing:0; font-family:helvetica,arial,sans-serif'`
	headerStyle = ` style='margin:0; padding:7px 20px 7px 0px; border-bottom:1px solid #eee; text-align:left; color:#888; font-weight:normal'`
	cellStyle   = ` style='margin:0; padding:7px 20px 7px 0px; border-bottom:1px solid #eee'`
)

// table makes one table of all items, a row each. Like n8n it does not escape the values,
// which may be HTML.
func table(ctx context.Context, call *node.Call) (*node.Result, error) {
	capitalize, err := call.Bool(ctx, 0, "options.capitalize", false)
	if err != nil {
		return nil, err
	}
	custom, err := call.Bool(ctx, 0, "options.customStyling", false)
	if err != nil {
		return nil, err
	}
	attributes := map[string]string{}
	for _, name := range []string{"caption", "tableAttributes", "headerAttributes", "rowAttributes", "cellAttributes"} {
		if attributes[name], err = call.String(ctx, 0, "options."+name, ""); err != nil {
			return nil, err
		}
	}
	open := func(tag, style, extra string) string {
		if custom {
			style = " "
		}
		return "<" + tag + style + " " + extra + ">"
	}
	var b strings.Builder
	columns := columnsOf(call.Input(0))
	b.WriteString(open("table", tableStyle, attributes["tableAttributes"]))
	if caption := attributes["caption"]; caption != "" {
		b.WriteString("<caption>" + caption + "</caption>")
	}
	b.WriteString(open("thead", headerStyle, attributes["headerAttributes"]) + "<tr>")
	for _, column := range columns {
		if capitalize {
			column = capitalized(column)
		}
		b.WriteString("<th>" + column + "</th>")
	}
	b.WriteString("</tr></thead><tbody>")
	for _, item := range call.Input(0) {
		object := jsonobject.Parse(item.JSON)
		b.WriteString(open("tr", " ", attributes["rowAttributes"]))
		for _, column := range columns {
			b.WriteString(open("td", cellStyle, attributes["cellAttributes"]) + asText(gjson.Parse(object.Get(column))) + "</td>")
		}
		b.WriteString("</tr>")
	}
	b.WriteString("</tbody></table>")
	var object jsonobject.Object
	object.Set("table", jsonobject.Quote(b.String()))
	out := workflow.Items{{JSON: object.JSON(), PairedItem: workflow.PairedWithAll(len(call.Input(0)))}}
	return &node.Result{Result: engine.Result{Outputs: []workflow.Items{out}}}, nil
}

// columnsOf are the fields of all items, in the order in which they appear.
func columnsOf(items workflow.Items) []string {
	var columns []string
	seen := map[string]bool{}
	for _, item := range items {
		gjson.ParseBytes(item.JSON).ForEach(func(key, _ gjson.Result) bool {
			if !seen[key.Str] {
				seen[key.Str] = true
				columns = append(columns, key.Str)
			}
			return true
		})
	}
	return columns
}

// capitalized makes words of the name of a field, each with a capital letter.
func capitalized(name string) string {
	words := strings.Fields(strings.ReplaceAll(name, "_", " "))
	for i, word := range words {
		runes := []rune(word)
		runes[0] = unicode.ToUpper(runes[0])
		words[i] = string(runes)
	}
	return strings.Join(words, " ")
}
