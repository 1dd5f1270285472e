//go:build !unix

package javascript

// memory is an ordinary slice that grows up to the limit.
type memory struct {
	limit uint64
	bytes []byte
}

func newMemory(limit uint64) *memory { return &memory{limit: limit} }

// Reallocate implements experimental.LinearMemory; nil refuses to grow.
func (m *memory) Reallocate(size uint64) []byte {
	if size > m.limit {
		return nil
	}
	if grow := int(size) - len(m.bytes); grow > 0 {
		m.bytes = append(m.bytes, make([]byte, grow)...)
	}
	return m.bytes[:size:size]
}

// Free implements experimental.LinearMemory.
func (m *memory) Free() { m.bytes = nil }
