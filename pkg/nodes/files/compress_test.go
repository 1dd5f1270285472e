package files

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

func TestCompression(t *testing.T) {
	input := nodestest.Items(`{"k":1}`)
	for name, text := range map[string]string{"a": "alpha", "b": strings.Repeat("beta", 9000)} {
		if input[0].Binary == nil {
			input[0].Binary = map[string]workflow.Binary{}
		}
		input[0].Binary[name] = workflow.Binary{FileName: "dir/" + name + ".txt", Data: base64.StdEncoding.EncodeToString([]byte(text))}
	}
	packed := nodestest.Run(t, Compression(), `{"operation":"compress","binaryPropertyName":"a, b","fileName":"x.zip"}`, input)[0]
	require.Equal(t, "application/zip", packed[0].Binary["data"].MimeType)
	require.Equal(t, "x.zip", packed[0].Binary["data"].FileName)
	unpacked := nodestest.Run(t, Compression(), `{}`, packed)[0][0]
	require.Len(t, unpacked.Binary, 2)
	require.Equal(t, "a.txt", unpacked.Binary["file_0"].FileName, "paths do not leave the archive")
	require.Equal(t, input[0].Binary["a"].Data, unpacked.Binary["file_0"].Data)
	require.Equal(t, input[0].Binary["b"].Data, unpacked.Binary["file_1"].Data)

	packed = nodestest.Run(t, Compression(), `{"operation":"compress","binaryPropertyName":"b","outputFormat":"gzip"}`, input)[0]
	require.Less(t, len(packed[0].Binary["data"].Data), 1000)
	unpacked = nodestest.Run(t, Compression(), `{"outputPrefix":"f"}`, packed)[0][0]
	require.Equal(t, input[0].Binary["b"].Data, unpacked.Binary["f0"].Data)

	call := nodestest.Call(Compression(), `{}`, packed)
	call.Files = &node.Files{MaxUnstoredBytes: 1000}
	_, err := call.Type.Execute(t.Context(), call)
	require.ErrorContains(t, err, "too large", "a small file that unpacks to a large one")
	for parameters, want := range map[string]string{`{"binaryPropertyName":"a"}`: "neither a ZIP", `{"binaryPropertyName":"z"}`: "none was found", `{"operation":"compress","binaryPropertyName":"z"}`: "none was found"} {
		call := nodestest.Call(Compression(), parameters, input)
		_, err := call.Type.Execute(t.Context(), call)
		require.ErrorContains(t, err, want)
	}
}
