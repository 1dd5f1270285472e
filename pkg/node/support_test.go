package node

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

func TestLimitHit(t *testing.T) {
	some := Limit{Parameter: "mode", Values: []string{"sql"}}
	anything := Limit{Parameter: "options.ipWhitelist"}
	for name, c := range map[string]struct {
		limit      Limit
		parameters string
		want       bool
	}{
		"absent":            {some, `{}`, false},
		"another value":     {some, `{"mode":"append"}`, false},
		"the value":         {some, `{"mode":"sql"}`, true},
		"computed":          {some, `{"mode":"={{ $json.mode }}"}`, false},
		"anything, absent":  {anything, `{"options":{}}`, false},
		"anything, empty":   {anything, `{"options":{"ipWhitelist":""}}`, false},
		"anything, off":     {anything, `{"options":{"ipWhitelist":false}}`, false},
		"anything, none":    {anything, `{"options":{"ipWhitelist":"none"}}`, false},
		"anything, there":   {anything, `{"options":{"ipWhitelist":"10.0.0.1"}}`, true},
		"anything, a list":  {anything, `{"options":{"ipWhitelist":["10.0.0.1"]}}`, true},
		"anything, no list": {anything, `{"options":{"ipWhitelist":[]}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, hit := c.limit.Hit(&workflow.Node{Parameters: json.RawMessage(c.parameters)})
			assert.Equal(t, c.want, hit)
		})
	}
}

func TestUnknownOptions(t *testing.T) {
	n := &workflow.Node{Parameters: json.RawMessage(`{"options":{"b":1,"timeout":2,"a":3}}`)}
	assert.Equal(t, []string{"b", "a"}, (&Support{Options: []string{"timeout"}}).UnknownOptions(n))
	assert.Empty(t, (&Support{}).UnknownOptions(n), "nothing is declared")
}

func TestSupporting(t *testing.T) {
	types := []*Type{{Spec: workflow.Spec{Type: "a"}}, {Spec: workflow.Spec{Type: "b"}}, {Spec: workflow.Spec{Type: "a"}}}
	Supporting(types, map[string]Support{"a": {Note: "x"}})
	assert.Equal(t, "x", types[0].Support.Note)
	assert.Empty(t, types[1].Support.Note)
	assert.Equal(t, "x", types[2].Support.Note, "another version of it")
	assert.Panics(t, func() { Supporting(types, map[string]Support{"misspelt": {}}) })
}
