package runner

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// maxScriptFileBytes is the greatest file that is handed to a script: it is there three times,
// as base64 and as bytes, within the script's memory.
const maxScriptFileBytes = 48 << 20

// scriptCalls are what a script can ask for with this.helpers.
func scriptCalls(call *node.Call) map[string]expression.AsyncCall {
	return map[string]expression.AsyncCall{
		"httpRequest": func(ctx context.Context, arg json.RawMessage) (json.RawMessage, error) {
			return scriptRequest(ctx, call.HTTP, arg)
		},
		"readFile": func(ctx context.Context, arg json.RawMessage) (json.RawMessage, error) {
			var file workflow.Binary
			if err := json.Unmarshal(arg, &file); err != nil {
				return nil, fmt.Errorf("read a file: %w", err)
			}
			data, err := call.Files.Read(ctx, file, maxScriptFileBytes)
			if err != nil {
				return nil, err
			}
			return json.Marshal(data) // as base64
		},
		"saveFile": func(ctx context.Context, arg json.RawMessage) (json.RawMessage, error) {
			var file workflow.Binary
			if err := json.Unmarshal(arg, &file); err != nil {
				return nil, fmt.Errorf("make a file: %w", err)
			}
			data, err := base64.StdEncoding.DecodeString(file.Data)
			if err != nil {
				return nil, fmt.Errorf("make a file: %w", err)
			}
			file.Data = ""
			saved, err := call.Files.Save(ctx, file, bytes.NewReader(data))
			if err != nil {
				return nil, err
			}
			return json.Marshal(saved)
		},
	}
}
