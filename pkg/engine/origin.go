package engine

import (
	"encoding/json"
	"fmt"
)

// OriginField is the field of TableMeta that ReadOrigin reads, for those who list
// many executions and do not want to read all of each.
const OriginField = fieldIdentity

// Origin says what an execution came from; it never changes.
type Origin struct {
	Mode    string
	Parent  ExecutionID // that started it, "" for none
	RetryOf ExecutionID // that it repeats, "" for none
	// Detached: the parent does not wait for its end.
	Detached bool
}

// ReadOrigin reads a value of OriginField. A field that is absent is no origin.
func ReadOrigin(value []byte) (Origin, error) {
	if len(value) == 0 {
		return Origin{}, nil
	}
	var id identity
	if err := json.Unmarshal(value, &id); err != nil {
		return Origin{}, fmt.Errorf("decode %s: %w", fieldIdentity, err)
	}
	o := Origin{Mode: id.Mode, RetryOf: id.RetryOf}
	if id.Parent != nil {
		o.Parent, o.Detached = id.Parent.Execution, id.Parent.Detached
	}
	return o, nil
}
