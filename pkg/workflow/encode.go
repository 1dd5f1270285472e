package workflow

import (
	"bytes"
	"sync"

	"github.com/segmentio/encoding/json"
)

// Raw says what Encode does with raw JSON in a value.
type Raw bool

const (
	// CheckRaw makes invalid raw JSON an error.
	CheckRaw Raw = false
	// TrustRaw passes raw JSON on that was read from JSON before, without looking at it again.
	TrustRaw Raw = true
)

// maxScratch bounds the buffers that are kept for the next value. What does not fit
// is returned in the buffer that it was encoded in.
const maxScratch = 64 << 10

var scratch = sync.Pool{New: func() any {
	b := make([]byte, 0, 4096)
	return &b
}}

// Encode is json.Marshal without its escaping of <, > and &, so that items keep their
// bytes, and with one allocation: growing a buffer is what costs most when messages
// of a few kilobytes are encoded.
func Encode(v any, raw Raw) ([]byte, error) {
	flags := json.SortMapKeys
	if raw == TrustRaw {
		flags |= json.TrustRawMessage
	}
	buffer := scratch.Get().(*[]byte)
	encoded, err := json.Append((*buffer)[:0], v, flags)
	if err != nil {
		return nil, err
	}
	if cap(encoded) > maxScratch {
		scratch.Put(buffer)
		return encoded, nil
	}
	*buffer = encoded
	encoded = bytes.Clone(encoded)
	scratch.Put(buffer)
	return encoded, nil
}
