package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// UnmarshalJSON also reads n8n's forms: the bare name that version 0 of its run
// data had, which means up to and with that node, and {"nodeName", "mode"} with
// the mode "inclusive" or "exclusive".
func (d *Destination) UnmarshalJSON(data []byte) error {
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && trimmed[0] == '"' {
		*d = Destination{}
		return json.Unmarshal(trimmed, &d.Node)
	}
	var form struct {
		Node      string `json:"nodeName"`
		Exclusive bool   `json:"exclusive"`
		Mode      string `json:"mode"`
	}
	if err := json.Unmarshal(data, &form); err != nil {
		return err
	}
	switch form.Mode {
	case "", "inclusive":
	case "exclusive":
		form.Exclusive = true
	default:
		return fmt.Errorf("destination mode %q is neither inclusive nor exclusive", form.Mode)
	}
	*d = Destination{Node: form.Node, Exclusive: form.Exclusive}
	return nil
}
