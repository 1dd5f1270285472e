package http

import (
	"bytes"
	"context"
	"io"
	nethttp "net/http"
	"sync/atomic"

	"github.com/reprise-engine/reprise/pkg/node"
)

func plainBody(data []byte, contentType string) body {
	return body{bytes: data, contentType: contentType}
}

// upload reads the parts of a body one after the other, opening each file when its turn comes.
type upload struct {
	ctx    context.Context
	files  *node.Files
	parts  []part
	length int64 // -1 when it is not known

	next    int
	current io.ReadCloser
	err     *atomic.Pointer[error] // why a file could not be read
}

// upload prepares the sending of a body. A file that is gone is an error here, before anything is sent.
func (x *execution) upload(ctx context.Context, b body) (*upload, error) {
	u := &upload{ctx: ctx, files: x.call.Files, parts: b.parts, err: &atomic.Pointer[error]{}}
	for _, p := range b.parts {
		switch {
		case p.file == nil:
			u.length += int64(len(p.bytes))
		case p.file.Bytes > 0 && u.length >= 0:
			u.length += p.file.Bytes
		default:
			u.length = -1
		}
		if u.length < 0 {
			break
		}
	}
	for _, p := range b.parts {
		if p.file == nil {
			continue
		}
		r, err := u.files.Open(ctx, *p.file)
		if err != nil {
			return nil, operationError(err.Error())
		}
		_ = r.Close()
	}
	return u, nil
}

// attach makes the upload the body of a request, which can be sent again after a redirect or
// over another connection.
func (u *upload) attach(req *nethttp.Request) {
	req.ContentLength = u.length
	req.GetBody = func() (io.ReadCloser, error) {
		again := *u
		again.next, again.current = 0, nil
		return &again, nil
	}
}

// failed is why a file could not be read, nil when all went well.
func (u *upload) failed() error {
	if err := u.err.Load(); err != nil {
		return *err
	}
	return nil
}

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	for {
		if u.current == nil {
			if u.next == len(u.parts) {
				return 0, io.EOF
			}
			part := u.parts[u.next]
			u.next++
			u.current = io.NopCloser(bytes.NewReader(part.bytes))
			if part.file != nil {
				r, err := u.files.Open(u.ctx, *part.file)
				if err != nil {
					u.err.Store(&err)
					return 0, err
				}
				u.current = r
			}
		}
		n, err := u.current.Read(p)
		switch {
		case err == io.EOF: //nolint:errorlint // Read returns it as it is
			_ = u.current.Close()
			u.current = nil
		case err != nil:
			u.err.Store(&err)
			return n, err
		}
		if n > 0 {
			return n, nil
		}
	}
}

// Close implements io.Closer. The transport may call it while Read still runs, and what is read
// holds nothing that would have to be freed: it does nothing.
func (u *upload) Close() error { return nil }
