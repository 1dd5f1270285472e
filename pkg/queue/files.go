package queue

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
)

// Files keeps the files of executions in StreamFiles. It is no object store of JetStream's, since
// nothing there can be removed by the execution that it belongs to: names are hashed into
// subjects, pieces have subjects of their own, and an upload that was cut off leaves pieces that no name
// leads to. Here all pieces of an execution's files have one subject prefix, and one purge removes
// them, also those of uploads that were never completed.
//
// Each upload has a name of its own, so a worker that was taken for dead and comes back cannot
// change a file that another attempt has made; what it leaves goes with its execution.
type Files struct{ c *Conn }

var _ node.FileStore = Files{}

// Files are the files of executions.
func (c *Conn) Files() Files { return Files{c} }

// fileMode begins the ids of files.
const fileMode = "nats"

// filePatience is how long a piece is tried to be sent or read while the server does not answer;
// fileLag is how long a piece that was confirmed may be unknown to the replica that is asked.
const (
	filePatience = 30 * time.Second
	fileLag      = 2 * time.Second
)

// Put implements node.FileStore. It holds one piece in memory. ErrFull is the error when the stream
// has reached its limit.
func (f Files) Put(ctx context.Context, execution engine.ExecutionID, r io.Reader) (id string, err error) {
	if err := ValidToken("execution id", string(execution)); err != nil {
		return "", err
	}
	name := rand.Text()
	subject := subjectFile + string(execution) + "." + name
	id = fileMode + ":" + string(execution) + "/" + name
	if err := f.send(ctx, subject, name, r); err != nil {
		tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.c.config.RequestTimeout)
		defer cancel()
		_ = f.purge(tidy, subject, 0) // or it goes with the execution
		return "", err
	}
	return id, nil
}

func (f Files) send(ctx context.Context, subject, name string, r io.Reader) error {
	sum := sha256.New()
	size := int(f.c.chunkSize())
	// One piece is read ahead, to know which is the last.
	piece, err := readPiece(r, make([]byte, size))
	if err != nil {
		return err
	}
	for n, ahead := 0, make([]byte, size); ; n++ {
		var following []byte
		if len(piece) == size {
			if following, err = readPiece(r, ahead); err != nil {
				return err
			}
		}
		sum.Write(piece)
		header := nats.Header{HeaderFilePiece: {strconv.Itoa(n)}, jetstream.MsgIDHeader: {name + "-" + strconv.Itoa(n)}}
		if len(following) == 0 {
			header[HeaderFileEnd] = []string{hex.EncodeToString(sum.Sum(nil))}
		}
		message := &nats.Msg{Subject: subject, Header: header, Data: piece}
		err := patiently(ctx, func() error {
			try, cancel := context.WithTimeout(ctx, f.c.config.RequestTimeout)
			defer cancel()
			message.Reply = ""
			_, err := f.c.js.PublishMsg(try, message)
			return classify(err)
		})
		if err != nil {
			return fmt.Errorf("store a file: %w", err)
		}
		if len(following) == 0 {
			return nil
		}
		piece, ahead = following, piece[:size]
	}
}

// readPiece fills buffer as far as r goes.
func readPiece(r io.Reader, buffer []byte) ([]byte, error) {
	n, err := io.ReadFull(r, buffer)
	if err == io.EOF || err == io.ErrUnexpectedEOF { //nolint:errorlint // ReadFull returns them as they are
		err = nil
	}
	return buffer[:n], err
}

// patiently repeats f while the server does not answer, for filePatience.
func patiently(ctx context.Context, f func() error) error {
	began := time.Now()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := f()
		if err == nil || !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrNoStream) || time.Since(began) > filePatience {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fileSubject is where the pieces of a file are.
func fileSubject(id string) (string, error) {
	execution, name, ok := strings.Cut(strings.TrimPrefix(id, fileMode+":"), "/")
	if !ok || !strings.HasPrefix(id, fileMode+":") || ValidToken("", execution) != nil || ValidToken("", name) != nil {
		return "", fmt.Errorf("%.200q is no id of a file here: %w", id, node.ErrFileGone)
	}
	return subjectFile + execution + "." + name, nil
}

// Get implements node.FileStore. The pieces are asked for one by one as they are read.
func (f Files) Get(ctx context.Context, id string) (io.ReadCloser, error) {
	subject, err := fileSubject(id)
	if err != nil {
		return nil, err
	}
	r := &fileReader{ctx: ctx, c: f.c, id: id, subject: subject, sum: sha256.New()}
	if err := r.next(); err != nil { // what is gone is noticed here, before anything is done with it
		return nil, err
	}
	return r, nil
}

// fileReader reads a file. It keeps the context of Get, as readers of the standard library's
// clients do.
type fileReader struct {
	ctx     context.Context
	c       *Conn
	id      string
	subject string
	piece   []byte
	n       int    // pieces read
	after   uint64 // sequence of the last one
	last    bool   // it was the last of the file
	sum     hash.Hash
	err     error
}

// Read implements io.Reader.
func (r *fileReader) Read(p []byte) (int, error) {
	for len(r.piece) == 0 {
		switch {
		case r.err != nil:
			return 0, r.err
		case r.last:
			r.err = io.EOF
		default:
			r.err = r.next()
		}
	}
	n := copy(p, r.piece)
	r.piece = r.piece[n:]
	return n, nil
}

// Close implements io.Closer.
func (r *fileReader) Close() error {
	if r.err == nil {
		r.err = errors.New("the file is closed")
	}
	r.piece = nil
	return nil
}

// next reads the next piece.
func (r *fileReader) next() error {
	var m *nats.Msg
	began := time.Now()
	err := patiently(r.ctx, func() (err error) {
		m, err = r.ask()
		for wait := 10 * time.Millisecond; errors.Is(err, node.ErrFileGone) && time.Since(began) < fileLag && r.behind(); wait *= 2 {
			select {
			case <-time.After(wait):
			case <-r.ctx.Done():
				return r.ctx.Err()
			}
			m, err = r.ask()
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("read file %s: %w", r.id, err)
	}
	if m.Header.Get(HeaderFilePiece) != strconv.Itoa(r.n) {
		return fmt.Errorf("read file %s: piece %d is missing: %w", r.id, r.n, node.ErrFileGone)
	}
	r.sum.Write(m.Data)
	if end := m.Header.Get(HeaderFileEnd); end != "" {
		r.last = true
		if end != hex.EncodeToString(r.sum.Sum(nil)) {
			return fmt.Errorf("read file %s: it is not what was stored", r.id)
		}
	}
	r.piece = m.Data
	r.n++
	return nil
}

// behind reports whether a piece that is not found may yet come: only replicas are behind.
func (r *fileReader) behind() bool { return r.c.nc.ConnectedClusterName() != "" }

// ask asks for the first piece after the last one. Any replica answers.
func (r *fileReader) ask() (*nats.Msg, error) {
	request, err := json.Marshal(struct {
		Seq  uint64 `json:"seq"`
		Next string `json:"next_by_subj"`
	}{r.after + 1, r.subject})
	if err != nil {
		return nil, err
	}
	try, cancel := context.WithTimeout(r.ctx, r.c.config.RequestTimeout)
	defer cancel()
	m, err := r.c.nc.RequestWithContext(try, "$JS.API.DIRECT.GET."+StreamFiles, request)
	if err != nil {
		return nil, classify(err)
	}
	switch status := m.Header.Get("Status"); status {
	case "":
	case "404":
		return nil, node.ErrFileGone
	default:
		return nil, fmt.Errorf("nats answers %s %s", status, m.Header.Get("Description"))
	}
	if r.after, err = strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64); err != nil {
		return nil, fmt.Errorf("nats answers without a sequence: %w", err)
	}
	return m, nil
}

// Remove implements node.FileStore.
func (f Files) Remove(ctx context.Context, id string) error {
	subject, err := fileSubject(id)
	if err != nil {
		return err
	}
	return f.purge(ctx, subject, 0)
}

// purge removes what a subject holds before a sequence number; 0 is all.
func (f Files) purge(ctx context.Context, subject string, before uint64) error {
	ctx, cancel := f.c.bounded(ctx)
	defer cancel()
	request, err := json.Marshal(struct {
		Filter string `json:"filter"`
		Seq    uint64 `json:"seq,omitempty"`
	}{subject, before})
	if err != nil {
		return err
	}
	m, err := f.c.nc.RequestWithContext(ctx, "$JS.API.STREAM.PURGE."+StreamFiles, request)
	var answer struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err == nil {
		err = json.Unmarshal(m.Data, &answer)
	}
	if err == nil && answer.Error != nil {
		err = answer.Error
	}
	if err != nil {
		return fmt.Errorf("remove files: %w", classify(err))
	}
	return nil
}

// Owners lists the executions that have files. upTo is for RemoveOf: the files that were there.
func (f Files) Owners(ctx context.Context) (owners []engine.ExecutionID, upTo uint64, err error) {
	ctx, cancel := f.c.bounded(ctx)
	defer cancel()
	stream, err := f.c.js.Stream(ctx, StreamFiles)
	if errors.Is(classify(err), ErrNoStream) {
		if restored, restoreErr := f.c.restoreStreams(ctx); restoreErr == nil && restored {
			stream, err = f.c.js.Stream(ctx, StreamFiles)
		}
	}
	if err != nil {
		return nil, 0, fmt.Errorf("list files: %w", classify(err))
	}
	upTo = stream.CachedInfo().State.LastSeq
	if stream.CachedInfo().State.Msgs == 0 {
		return nil, upTo, nil
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(subjectFile+">"))
	if err != nil {
		return nil, 0, fmt.Errorf("list files: %w", classify(err))
	}
	seen := map[engine.ExecutionID]bool{}
	for subject := range info.State.Subjects {
		execution, _, _ := strings.Cut(strings.TrimPrefix(subject, subjectFile), ".")
		if id := engine.ExecutionID(execution); !seen[id] {
			seen[id] = true
			owners = append(owners, id)
		}
	}
	return owners, upTo, nil
}

// RemoveOf removes the files that an execution had when Owners was asked: its id may have been
// used again since.
func (f Files) RemoveOf(ctx context.Context, execution engine.ExecutionID, upTo uint64) error {
	if err := ValidToken("execution id", string(execution)); err != nil {
		return err
	}
	return f.purge(ctx, subjectFile+string(execution)+".*", upTo+1)
}
