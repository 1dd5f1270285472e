package node

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// MemoryFiles is a FileStore in memory, for tests and for programs that run nodes by themselves.
// The zero value is empty.
type MemoryFiles struct {
	mu    sync.Mutex
	next  int
	files map[string][]byte
}

var _ FileStore = (*MemoryFiles)(nil)

// Put implements FileStore.
func (m *MemoryFiles) Put(ctx context.Context, execution engine.ExecutionID, r io.Reader) (string, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.files == nil {
		m.files = map[string][]byte{}
	}
	m.next++
	id := fmt.Sprintf("memory:%s/%d", execution, m.next)
	m.files[id] = data
	return id, ctx.Err()
}

// Get implements FileStore.
func (m *MemoryFiles) Get(_ context.Context, id string) (io.ReadCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.files[id]
	if !ok {
		return nil, fmt.Errorf("%s: %w", id, ErrFileGone)
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// Remove implements FileStore.
func (m *MemoryFiles) Remove(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.files, id)
	return nil
}

// Len is the number of files.
func (m *MemoryFiles) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.files)
}
