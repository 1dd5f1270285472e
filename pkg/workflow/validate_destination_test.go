package workflow

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestValidateUpTo(t *testing.T) {
	w := build(t, `
		Start `+manualTrigger+`
		Set set
		Agent agent
		Sub agentTool
		After teleport
		Start -main-> Set
		Set -main-> Agent
		Sub -ai_tool-> Agent
		Agent -main-> After`, "")
	agent := `node "Agent", ai_languageModel: a Chat Model must be connected and enabled`
	sub := `node "Sub", ai_languageModel: a Chat Model must be connected and enabled`
	after := `node "After", type: "teleport" is not known here; disable the node, replace it or pin its data`
	for name, c := range map[string]struct {
		destination string
		exclusive   bool
		want        []string
	}{
		"before what is wrong":             {"Set", false, nil},
		"with the node and what it uses":   {"Agent", false, []string{agent, sub}},
		"without the node":                 {"Agent", true, nil},
		"what leads to the node counts":    {"After", true, []string{agent, sub}},
		"all of it":                        {"After", false, []string{agent, sub, after}},
		"a node that is not there":         {"Nowhere", false, []string{agent, sub, after}},
		"a trigger is nothing but itself":  {"Start", false, nil},
		"exclusively the trigger: nothing": {"Start", true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range ValidateUpTo(w, known, "", c.destination, c.exclusive) {
				got = append(got, p.String())
			}
			assert.Equal(t, c.want, got)
		})
	}
}
