package acceptance

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/labtest"
)

// TestToolVariants: nodes that are tools too get what the model gives by $fromAI, and their items are its results.
func TestToolVariants(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	site := l.Site()
	variant := func(name, kind string, version float64, parameters map[string]any) labtest.Node {
		return labtest.Node{"id": name, "name": name, "type": "n8n-nodes-base." + kind, "typeVersion": version, "position": []int{0, 0}, "parameters": parameters}
	}
	tools := []labtest.Node{
		variant("Hash", "cryptoTool", 1, map[string]any{"action": "hash", "type": "SHA256", "value": "={{ $fromAI('text', 'what to hash') }}"}),
		variant("Claims", "jwtTool", 1, map[string]any{"operation": "decode", "token": "={{ $fromAI('token', 'a JSON web token') }}"}),
		variant("Day", "dateTimeTool", 2, map[string]any{
			"operation": "formatDate", "date": "={{ $fromAI('date', 'an ISO date') }}", "format": "custom", "customFormat": "dd.MM.yyyy", "outputFieldName": "d",
		}),
	}
	const token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl" // {"sub":"ann"}
	c := converse(t, site, script("m",
		asks(free("Hash", `{"text":"hello"}`), free("Claims", fmt.Sprintf(`{"token":%q}`, token)), free("Day", `{"date":"2026-03-01T10:00:00Z"}`)),
		says("done")))
	run := l.run(t, site.Agent("m", tools...), nil)
	require.Equal(t, "success", run.Get("status").Str, run.Raw)
	shown := c.request(t, 0).Get("tools")
	assert.Equal(t, "what to hash", shown.Get(`#(function.name=="Hash").function.parameters.properties.text.description`).Str, shown.Raw)
	assert.Contains(t, shown.Get(`#(function.name=="Claims").function.description`).Str, "JSON web tokens")
	got := results(c.request(t, 1))
	require.Len(t, got, 3)
	assert.Contains(t, got[0], "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824")
	assert.Contains(t, got[1], `"sub":"ann"`)
	assert.Contains(t, got[2], "01.03.2026")
}
