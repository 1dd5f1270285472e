package workflow

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPairedItemsAsJSON(t *testing.T) {
	source := &Source{PreviousNode: "Start"}
	for text, lineage := range map[string]PairedItems{
		`{"item":0}`:                        Paired(0),
		`{"item":12345}`:                    Paired(12345),
		`{"item":-1}`:                       Paired(-1),
		`{"item":1,"input":2}`:              {{Item: 1, Input: 2}},
		`[{"item":0},{"item":1}]`:           PairedWithAll(2),
		`[]`:                                {},
		`[{"item":3},{"item":1,"input":1}]`: {{Item: 3}, {Item: 1, Input: 1}},
		`{"item":0,"sourceOverwrite":{"previousNode":"Start","previousNodeOutput":0,"previousNodeRun":0}}`: {{SourceOverwrite: source}},
	} {
		encoded, err := json.Marshal(lineage)
		require.NoError(t, err)
		require.Equal(t, text, string(encoded))
		var read PairedItems
		require.NoError(t, json.Unmarshal(encoded, &read))
		require.Equal(t, lineage, read)
	}
}
