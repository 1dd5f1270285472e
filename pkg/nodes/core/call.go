package core

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
)

// parameter returns a parameter as the file has it. Unlike Call.Raw it reads
// only as much of the parameters as it must.
func parameter(call *node.Call, path string) gjson.Result {
	return gjson.GetBytes(call.Node.Parameters, path)
}

// resolve evaluates the expressions in a raw parameter for an item. Literals do
// not reach the resolver. The result does not exist when it is undefined.
func resolve(ctx context.Context, call *node.Call, item int, raw gjson.Result, path string) (gjson.Result, error) {
	if !strings.Contains(raw.Raw, `"=`) {
		return raw, nil
	}
	value, err := call.Parameters.Resolve(ctx, call, item, json.RawMessage(raw.Raw))
	if err != nil {
		return gjson.Result{}, node.ParameterError(err, item, path)
	}
	return gjson.ParseBytes(value), nil
}

// flag reads a boolean parameter for an item.
func flag(ctx context.Context, call *node.Call, item int, path string, fallback bool) (bool, error) {
	raw := parameter(call, path)
	if raw.Type == gjson.True || raw.Type == gjson.False {
		return raw.Bool(), nil
	}
	if !raw.Exists() {
		return fallback, nil
	}
	return call.Bool(ctx, item, path, fallback)
}

// choice reads a text parameter for an item.
func choice(ctx context.Context, call *node.Call, item int, path, fallback string) (string, error) {
	raw := parameter(call, path)
	if !raw.Exists() {
		return fallback, nil
	}
	value, err := resolve(ctx, call, item, raw, path)
	if err != nil || value.Type == gjson.Null {
		return fallback, err
	}
	return value.String(), nil
}

// names splits a comma-separated list of fields; a JSON list will do as well.
func names(value gjson.Result) []string {
	var list []string
	if value.IsArray() {
		for _, element := range value.Array() {
			list = append(list, element.String())
		}
		return list
	}
	for _, name := range strings.Split(value.String(), ",") {
		if name = strings.TrimSpace(name); name != "" {
			list = append(list, name)
		}
	}
	return list
}
