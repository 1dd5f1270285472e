package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	fastjson "github.com/segmentio/encoding/json"
)

// Item is one unit of data that flows along a connection. JSON is always an
// object and is kept as the producer wrote it, so key order survives.
type Item struct {
	JSON       json.RawMessage   `json:"json"`
	Binary     map[string]Binary `json:"binary,omitempty"`
	PairedItem PairedItems       `json:"pairedItem,omitempty"`
	// Error is an item-level error: the node succeeded, this item did not.
	Error json.RawMessage `json:"error,omitempty"`
	// Metadata links the item to the execution it came from: {"subExecution": …}.
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// Items is one output (or input). nil means "no data for this output" and is
// written as null; an empty list means "data, but no items".
type Items []Item

// Binary describes a file that travels with an item. Data is base64 unless
// ID names where the bytes are kept; then it is the kind of place, as in n8n.
type Binary struct {
	MimeType      string `json:"mimeType,omitempty"`
	FileType      string `json:"fileType,omitempty"`
	FileExtension string `json:"fileExtension,omitempty"`
	FileName      string `json:"fileName,omitempty"`
	FileSize      string `json:"fileSize,omitempty"`
	Data          string `json:"data,omitempty"`
	ID            string `json:"id,omitempty"`
	// Bytes is the exact size of a file with an ID.
	Bytes int64 `json:"bytes,omitempty"`
}

// Source says where the data of one input came from.
type Source struct {
	PreviousNode       string `json:"previousNode"`
	PreviousNodeOutput int    `json:"previousNodeOutput"`
	PreviousNodeRun    int    `json:"previousNodeRun"`
}

// PairedItem links an item to the input item it was made from. A
// SourceOverwrite replaces the record's own source when lineage is walked.
type PairedItem struct {
	Item            int     `json:"item"`
	Input           int     `json:"input,omitempty"`
	SourceOverwrite *Source `json:"sourceOverwrite,omitempty"`
}

// PairedItems is the lineage of an item. n8n writes it as a number, an object
// or a list of either; it is read in all three forms and written as an object
// when there is one, as a list otherwise.
type PairedItems []PairedItem

// Paired is the lineage of an item made from one input item.
func Paired(item int) PairedItems { return PairedItems{{Item: item}} }

// PairedWithAll is the lineage of what was made from all of n input items.
func PairedWithAll(n int) PairedItems {
	all := make(PairedItems, n)
	for i := range all {
		all[i].Item = i
	}
	return all
}

// MarshalJSON implements json.Marshaler.
func (p PairedItems) MarshalJSON() ([]byte, error) {
	if len(p) == 1 {
		// What items nearly always have is written without a JSON encoder.
		if one := p[0]; one.Input == 0 && one.SourceOverwrite == nil {
			return append(strconv.AppendInt([]byte(`{"item":`), int64(one.Item), 10), '}'), nil
		}
		return json.Marshal(p[0])
	}
	return json.Marshal([]PairedItem(p))
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *PairedItems) UnmarshalJSON(data []byte) error {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || bytes.Equal(data, []byte("null")) {
		*p = nil
		return nil
	}
	if data[0] != '[' {
		one, err := pairedOne(data)
		if err != nil {
			return err
		}
		*p = PairedItems{one}
		return nil
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	list := make(PairedItems, 0, len(raw))
	for _, r := range raw {
		one, err := pairedOne(r)
		if err != nil {
			return err
		}
		list = append(list, one)
	}
	*p = list
	return nil
}

func pairedOne(data []byte) (PairedItem, error) {
	var one PairedItem
	// What items nearly always have is read without a JSON decoder.
	if number, ok := bytes.CutPrefix(data, []byte(`{"item":`)); ok {
		if number, ok = bytes.CutSuffix(number, []byte("}")); ok {
			if n, err := strconv.Atoi(string(number)); err == nil {
				return PairedItem{Item: n}, nil
			}
		}
	}
	into := any(&one)
	if len(data) > 0 && data[0] != '{' {
		into = &one.Item
	}
	if err := fastjson.Unmarshal(data, into); err != nil {
		return one, fmt.Errorf("pairedItem %s: %w", data, err)
	}
	return one, nil
}
