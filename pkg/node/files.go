package node

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Sizes of files that are not configured.
const (
	// DefaultInlineFileBytes is the size up to which a file travels inside its item.
	DefaultInlineFileBytes = 8 << 10
	// DefaultMaxFileBytes is the greatest size of one file.
	DefaultMaxFileBytes = 256 << 20
	// DefaultMaxUnstoredBytes bounds the files that one run makes where there is no store: they
	// are all held in memory, and in the run data.
	DefaultMaxUnstoredBytes = 64 << 20
)

var (
	// ErrFileGone is returned, wrapped, by a FileStore for a file that is kept no longer, or never was.
	ErrFileGone = errors.New("the file is kept no longer")
	// ErrFileTooLarge is returned, wrapped, by Save.
	ErrFileTooLarge = errors.New("the file is too large")
)

// FileStore keeps the bytes of files apart from the items they travel with.
// Goroutines may share it.
type FileStore interface {
	// Put keeps what r gives, for as long as the execution is kept, under an id that begins with
	// "<mode>:". When it fails nothing is kept. An error of r comes back as it is, or wrapped.
	Put(ctx context.Context, execution engine.ExecutionID, r io.Reader) (id string, err error)
	// Get reads a file. Reading fails with an error other than io.EOF when the file is gone
	// (ErrFileGone) or not what was put.
	Get(ctx context.Context, id string) (io.ReadCloser, error)
	// Remove forgets a file before its time; one that is not there is no error.
	Remove(ctx context.Context, id string) error
}

// Files are the files of one run. The zero value, and nil, have no store: files travel inside their
// items. Goroutines may share one; its fields are not changed after the first use.
type Files struct {
	Store     FileStore
	Execution engine.ExecutionID
	// InlineBytes is the size up to which a file stays in its item (0: DefaultInlineFileBytes),
	// MaxBytes the greatest size of one (0: DefaultMaxFileBytes).
	InlineBytes, MaxBytes int64
	// MaxUnstoredBytes bounds all files of the run when there is no store; 0: DefaultMaxUnstoredBytes.
	MaxUnstoredBytes int64

	mu       sync.Mutex
	made     []string // ids in Store
	unstored int64
}

// Stored reports whether large files are kept apart from their items.
func (f *Files) Stored() bool { return f != nil && f.Store != nil }

// Open reads a file. The caller closes it.
func (f *Files) Open(ctx context.Context, file workflow.Binary) (io.ReadCloser, error) {
	if file.ID == "" {
		// Base64 is read as it comes: with line breaks, and with or without padding.
		data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(file.Data, "=\r\n"))
		if err != nil {
			return nil, fmt.Errorf("file %q is not valid base64", file.FileName)
		}
		return io.NopCloser(bytes.NewReader(data)), nil
	}
	if !f.Stored() {
		return nil, fmt.Errorf("file %q is kept where this process cannot reach it (%s)", file.FileName, file.ID)
	}
	r, err := f.Store.Get(ctx, file.ID)
	if err != nil {
		return nil, fmt.Errorf("open file %q: %w", file.FileName, err)
	}
	return r, nil
}

// Read is Open for a file that is needed whole; one of more than limit bytes is ErrFileTooLarge.
func (f *Files) Read(ctx context.Context, file workflow.Binary, limit int64) ([]byte, error) {
	r, err := f.Open(ctx, file)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read file %q: %w", file.FileName, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("read file %q: %w: more than the %d bytes that can be worked on", file.FileName, ErrFileTooLarge, limit)
	}
	return data, nil
}

// Save makes a file of what r gives and returns its description: file, with its data or id and its
// size, and with what follows from its media type and name where that is left open. Nothing
// of a larger file is held in memory. An error of r comes back wrapped.
func (f *Files) Save(ctx context.Context, file workflow.Binary, r io.Reader) (workflow.Binary, error) {
	if !f.Stored() {
		return f.saveInline(file, r)
	}
	inline, most := orDefault(f.InlineBytes, DefaultInlineFileBytes), orDefault(f.MaxBytes, DefaultMaxFileBytes)
	head, err := io.ReadAll(io.LimitReader(r, inline+1))
	if err != nil {
		return file, err
	}
	if int64(len(head)) <= inline {
		return described(file, head, int64(len(head))), nil
	}
	counted := &counter{r: io.MultiReader(bytes.NewReader(head), r), left: most}
	id, err := f.Store.Put(ctx, f.Execution, counted)
	switch {
	case errors.Is(err, ErrFileTooLarge):
		return file, tooLarge(most)
	case err != nil:
		return file, fmt.Errorf("keep file %q: %w", file.FileName, err)
	}
	f.mu.Lock()
	f.made = append(f.made, id)
	f.mu.Unlock()
	file = described(file, head, counted.read)
	file.ID, file.Bytes = id, counted.read
	file.Data, _, _ = strings.Cut(id, ":")
	return file, nil
}

func (f *Files) saveInline(file workflow.Binary, r io.Reader) (workflow.Binary, error) {
	most := int64(DefaultMaxUnstoredBytes)
	if f != nil {
		most = orDefault(f.MaxUnstoredBytes, most)
		f.mu.Lock()
		defer f.mu.Unlock()
		most -= f.unstored
	}
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return file, err
	}
	if int64(len(data)) > most {
		return file, tooLarge(most)
	}
	if f != nil {
		f.unstored += int64(len(data))
	}
	return described(file, data, int64(len(data))), nil
}

// Discard forgets the files that were saved, when the run has no result that names them.
func (f *Files) Discard(ctx context.Context) error {
	if !f.Stored() {
		return nil
	}
	f.mu.Lock()
	made := f.made
	f.made = nil
	f.mu.Unlock()
	var failed error
	for _, id := range made {
		failed = errors.Join(failed, f.Store.Remove(ctx, id))
	}
	return failed
}

func tooLarge(most int64) error {
	return fmt.Errorf("%w: more than the %d bytes allowed", ErrFileTooLarge, most)
}

func orDefault(given, otherwise int64) int64 {
	if given > 0 {
		return given
	}
	return otherwise
}

// counter reads no more than left bytes.
type counter struct {
	r          io.Reader
	read, left int64
}

// Read implements io.Reader.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.read += int64(n)
	if c.left -= int64(n); c.left < 0 {
		return n, ErrFileTooLarge
	}
	return n, err
}

// described completes the description of a file that begins with head and is size bytes long, and
// puts head into it.
func described(file workflow.Binary, head []byte, size int64) workflow.Binary {
	file = Describe(file, head)
	file.FileSize = FileSize(size)
	file.Data, file.ID, file.Bytes = base64.StdEncoding.EncodeToString(head), "", 0
	return file
}
