package queue

import (
	"encoding/json"
	"fmt"
)

// What messages of another version mean to a reader, so that old and new programs can run side
// by side:
//
//   - The same version, with fields that the reader does not know: read, without them. A field is
//     added in this way when whoever does not know it does the right thing without it.
//   - An older version: read.
//   - A greater version: refused, and left to whoever knows it. A job and a durable submission
//     go back to their stream; whoever asked for an answer is told, and asks again or tells a
//     person. Nothing is removed, and nothing becomes a dead letter.

// versionOf is the version of a message whose other fields may have any shape; 0 when it has none
// that can be read.
func versionOf(data []byte) int {
	var m struct {
		Version int `json:"v"`
	}
	if json.Unmarshal(data, &m) != nil {
		return 0
	}
	return m.Version
}

// known returns the error of a version that is greater than this program's, or nil.
func known(what string, version int) error {
	if version <= Version {
		return nil
	}
	return fmt.Errorf("%s has version %d, this program knows %d: it is left for a newer one, finish the upgrade", what, version, Version)
}
