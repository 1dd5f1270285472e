package isolation

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"unsafe"
)

// A frame is its kind (a byte), the number of its parts (a byte), and each part behind
// its length (4 bytes, little-endian). Parts are texts or JSON.
type frame struct {
	kind  byte
	parts []string
}

// Kinds of frames, with their parts.
const (
	frameReady   = 'R' // child: it can be given a script; which protection the system did not grant
	frameRun     = 'r' // parent: source, item, globals, scope, timeout in nanoseconds
	frameHost    = 'h' // child: op, argument
	frameValue   = 'v' // parent: answer
	frameNothing = 'u' // parent: the answer is undefined
	frameThrow   = 'x' // parent: text of the error to be thrown
	frameDone    = 'd' // child: reply
	frameTimeout = 't' // child: the script ran into its deadline
	frameMemory  = 'm' // child: limit in bytes
	framePending = 'p' // child: the script waits for nothing
	frameFailed  = 'e' // child: text of any other error
)

const (
	maxParts = 8
	// maxPartBytes keeps a length that was garbled from being believed.
	maxPartBytes = 512 << 20
)

func writeFrame(w *bufio.Writer, kind byte, parts ...string) error {
	_ = w.WriteByte(kind) // its error stays with w
	_ = w.WriteByte(byte(len(parts)))
	for _, part := range parts {
		var length [4]byte
		binary.LittleEndian.PutUint32(length[:], uint32(len(part)))
		_, _ = w.Write(length[:])
		_, _ = w.WriteString(part)
	}
	return w.Flush()
}

// readFrame returns io.EOF when there is no further frame.
func readFrame(r *bufio.Reader) (frame, error) {
	kind, err := r.ReadByte()
	if err != nil {
		return frame{}, err
	}
	f := frame{kind: kind}
	n, err := r.ReadByte()
	if err != nil || n > maxParts {
		return f, fmt.Errorf("frame %q of %d parts: %w", kind, n, orGarbled(err))
	}
	for range n {
		var length [4]byte
		if _, err := io.ReadFull(r, length[:]); err != nil {
			return f, fmt.Errorf("frame %q: %w", kind, err)
		}
		size := binary.LittleEndian.Uint32(length[:])
		if size > maxPartBytes {
			return f, fmt.Errorf("frame %q with %d bytes: %w", kind, size, orGarbled(nil))
		}
		part := make([]byte, size)
		if _, err := io.ReadFull(r, part); err != nil {
			return f, fmt.Errorf("frame %q: %w", kind, err)
		}
		// Nothing else refers to part: no copy of what may be many megabytes.
		f.parts = append(f.parts, unsafe.String(unsafe.SliceData(part), len(part)))
	}
	return f, nil
}

func orGarbled(err error) error {
	if err == nil {
		return io.ErrUnexpectedEOF
	}
	return err
}
