package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// Raw returns the parameter at a dotted path ("options.timeout",
// "rules.values.0.outputKey") as the file has it, or nil.
func (c *Call) Raw(path string) json.RawMessage {
	keys := strings.Split(path, ".")
	for i, key := range keys {
		keys[i] = gjson.Escape(key)
	}
	found := gjson.GetBytes(c.Node.Parameters, strings.Join(keys, "."))
	if !found.Exists() {
		return nil
	}
	return c.Node.Parameters[found.Index : found.Index+len(found.Raw)]
}

// Param returns the parameter at path with its expressions evaluated for an
// input item; nil when it is absent or undefined.
func (c *Call) Param(ctx context.Context, item int, path string) (json.RawMessage, error) {
	raw := c.Raw(path)
	if len(raw) == 0 {
		return nil, nil
	}
	value, err := c.Parameters.Resolve(ctx, c, item, raw)
	if err != nil {
		return nil, ParameterError(err, item, path)
	}
	return value, nil
}

// ParamInto decodes a parameter into dst; dst keeps its value (the default)
// when the parameter is absent, undefined or null.
func (c *Call) ParamInto(ctx context.Context, item int, path string, dst any) error {
	value, err := c.Param(ctx, item, path)
	if err != nil || len(value) == 0 || string(value) == "null" {
		return err
	}
	if err := json.Unmarshal(value, dst); err != nil {
		return ParameterError(fmt.Errorf("%s is no %T", value, dst), item, path)
	}
	return nil
}

// String returns a text parameter; numbers and booleans are rendered.
func (c *Call) String(ctx context.Context, item int, path, fallback string) (string, error) {
	value, err := c.Param(ctx, item, path)
	if err != nil || len(value) == 0 || string(value) == "null" {
		return fallback, err
	}
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text, nil
	}
	return string(value), nil
}

// Int returns a number parameter; a numeric text counts.
func (c *Call) Int(ctx context.Context, item int, path string, fallback int) (int, error) {
	text, err := c.String(ctx, item, path, "")
	if err != nil || text == "" {
		return fallback, err
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return fallback, ParameterError(fmt.Errorf("%q is no number", text), item, path)
	}
	return int(f), nil
}

// Bool returns a boolean parameter; the texts "true" and "false" count.
func (c *Call) Bool(ctx context.Context, item int, path string, fallback bool) (bool, error) {
	text, err := c.String(ctx, item, path, "")
	switch {
	case err != nil || text == "":
		return fallback, err
	case text == "true" || text == "false":
		return text == "true", nil
	}
	return fallback, ParameterError(fmt.Errorf("%q is neither true nor false", text), item, path)
}

// ParameterError is err as the failure of a parameter, for an item. A node
// failure keeps its words, and a stopped context stays what it is.
func ParameterError(err error, item int, path string) error {
	var failure *engine.NodeError
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &failure):
		if failure.ItemIndex == nil {
			failure.ItemIndex = &item
		}
		return failure
	}
	return &engine.NodeError{
		Name: "NodeOperationError", Message: err.Error(),
		Description: "parameter " + path, ItemIndex: &item,
	}
}
