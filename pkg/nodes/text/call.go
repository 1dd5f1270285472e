package text

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
)

// maxFileBytes bounds the files that are taken apart in memory.
const maxFileBytes = 32 << 20

// fileText reads the file that an item carries under a name as UTF-8.
func fileText(ctx context.Context, call *node.Call, i int, name string) (string, error) {
	file, ok := call.Input(0)[i].Binary[name]
	if !ok {
		return "", node.OperationError(i, fmt.Sprintf("No property named %q exists!", name), "The item has no file of this name.")
	}
	data, err := call.Files.Read(ctx, file, maxFileBytes)
	if err != nil {
		return "", node.ParameterError(err, i, name)
	}
	return string(bytes.TrimPrefix(data, []byte("\ufeff"))), nil
}

// asText is a value as JavaScript puts it into a text; trees become JSON.
func asText(value gjson.Result) string {
	if value.IsObject() || value.IsArray() {
		var b bytes.Buffer
		if json.Compact(&b, []byte(value.Raw)) == nil {
			return b.String()
		}
	}
	return value.String()
}
