//go:build unix

package javascript

import "syscall"

// memory is address space reserved up to the limit. Pages cost nothing before
// they are touched and growing copies nothing.
type memory struct{ reserved []byte }

func newMemory(limit uint64) *memory {
	reserved, err := syscall.Mmap(-1, 0, int(limit),
		syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return &memory{}
	}
	return &memory{reserved: reserved}
}

// Reallocate implements experimental.LinearMemory; nil refuses to grow.
func (m *memory) Reallocate(size uint64) []byte {
	if size > uint64(len(m.reserved)) {
		return nil
	}
	return m.reserved[:size:size]
}

// Free implements experimental.LinearMemory.
func (m *memory) Free() {
	if m.reserved != nil {
		_ = syscall.Munmap(m.reserved)
		m.reserved = nil
	}
}
