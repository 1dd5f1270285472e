package node

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// literal resolves nothing.
type literal struct{}

func (literal) Resolve(_ context.Context, _ *Call, _ int, raw json.RawMessage) (json.RawMessage, error) {
	return raw, nil
}

func newCall(parameters string) *Call {
	c := &Call{Node: &workflow.Node{Name: "Node", Parameters: []byte(parameters)}}
	c.Parameters = literal{}
	return c
}

func TestRaw(t *testing.T) {
	c := newCall(`{"text": "a", "options": {"timeout" : 5, "list":[{"k":"v"}, 2], "none": null, "a*b": 1}, "#": 3}`)
	for path, want := range map[string]string{
		"text": `"a"`, "options.timeout": "5", "options.list.0.k": `"v"`, "options.list.1": "2", "options.list": `[{"k":"v"}, 2]`,
		"options.none": "null", "options.a*b": "1", "#": "3",
		"missing": "", "text.x": "", "options.list.7": "", "options.list.x": "", "options.*": "",
	} {
		require.Equal(t, want, string(c.Raw(path)), path)
	}
	require.Nil(t, newCall(``).Raw("a"))
}

func TestTypedParameters(t *testing.T) {
	c := newCall(`{"n":"12","b":"true","x":{"y":1},"bad":"many","null":null}`)
	ctx := t.Context()
	n, err := c.Int(ctx, 0, "n", 1)
	require.NoError(t, err)
	require.Equal(t, 12, n)
	n, err = c.Int(ctx, 0, "null", 7)
	require.NoError(t, err)
	require.Equal(t, 7, n)
	b, err := c.Bool(ctx, 0, "b", false)
	require.NoError(t, err)
	require.True(t, b)
	text, err := c.String(ctx, 0, "x", "")
	require.NoError(t, err)
	require.Equal(t, `{"y":1}`, text)
	_, err = c.Int(ctx, 3, "bad", 0)
	var failure *engine.NodeError
	require.ErrorAs(t, err, &failure)
	require.Equal(t, "parameter bad", failure.Description)
	require.Equal(t, 3, *failure.ItemIndex)
	into := 5
	require.NoError(t, c.ParamInto(ctx, 0, "missing", &into))
	require.Equal(t, 5, into)
}

func TestRegistry(t *testing.T) {
	r := &Registry{}
	r.Register(&Type{Spec: workflow.Spec{Type: "a", Versions: []float64{1, 2}}}, &Type{Spec: workflow.Spec{Type: "a", Versions: []float64{3}}})
	spec, ok := r.Lookup("a", 4)
	require.False(t, ok)
	require.NotNil(t, spec, "the type is known, its version is not")
	_, ok = r.Lookup("a", 3)
	require.True(t, ok)
	require.Panics(t, func() { r.Register(&Type{Spec: workflow.Spec{Type: "a", Versions: []float64{2}}}) })
}
