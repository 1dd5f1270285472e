package text

import (
	"context"
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Markdown turns Markdown into HTML and HTML into Markdown.
func Markdown() *node.Type {
	return &node.Type{
		Spec: workflow.Spec{Type: base + "markdown", Versions: []float64{1}},
		Execute: func(ctx context.Context, call *node.Call) (*node.Result, error) {
			return call.ByItem(ctx, func(i int) (workflow.Items, error) {
				item, err := markdownItem(ctx, call, i)
				return workflow.Items{item}, err
			})
		},
	}
}

func markdownItem(ctx context.Context, call *node.Call, i int) (workflow.Item, error) {
	item := call.Input(0)[i]
	mode, err := call.String(ctx, i, "mode", "htmlToMarkdown")
	if err != nil {
		return item, err
	}
	key, err := call.String(ctx, i, "destinationKey", "data")
	if err != nil {
		return item, err
	}
	o, err := optionsOf(ctx, call, i)
	if err != nil {
		return item, err
	}
	var result string
	switch mode {
	case "htmlToMarkdown":
		var text string
		if text, err = call.String(ctx, i, "html", ""); err == nil {
			result, err = markdownOf(text, o)
		}
	case "markdownToHtml":
		var text string
		if text, err = call.String(ctx, i, "markdown", ""); err == nil {
			result, err = htmlOf(text, o)
		}
	default:
		return item, node.Unknown(i, "mode", mode, "htmlToMarkdown", "markdownToHtml")
	}
	if err != nil {
		return item, node.ParameterError(err, i, "options")
	}
	object := jsonobject.Parse(item.JSON)
	object.SetPath(key, jsonobject.Quote(result))
	return workflow.Item{JSON: object.JSON(), Binary: item.Binary}, nil
}

// options are the members of the parameter "options" for an item.
type options struct{ values gjson.Result }

func optionsOf(ctx context.Context, call *node.Call, i int) (options, error) {
	value, err := call.Param(ctx, i, "options")
	if len(value) == 0 {
		value = json.RawMessage(`{}`)
	}
	return options{gjson.ParseBytes(value)}, err
}

func (o options) flag(name string, fallback bool) bool {
	if value := o.values.Get(name); value.Exists() && value.Type != gjson.Null {
		return value.Bool()
	}
	return fallback
}

func (o options) text(name, fallback string) string {
	if value := o.values.Get(name); value.Type != gjson.Null && value.String() != "" {
		return value.String()
	}
	return fallback
}

func (o options) number(name string, fallback int) int {
	if value := o.values.Get(name); value.Type != gjson.Null && value.String() != "" {
		return int(value.Int())
	}
	return fallback
}
