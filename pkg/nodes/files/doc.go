// Package files holds the node types that read and make files: Extract from File, Convert to File and Compression, and their
// elders Spreadsheet File, Move Binary Data and Read PDF. Files come and go
// through Call.Files, so large ones are not held in run data; what has to be parsed whole is read up
// to a limit.
package files

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

const base = "n8n-nodes-base."

// maxParsedBytes bounds a file that is parsed whole.
const maxParsedBytes = 64 << 20

// Types returns the node types.
func Types() []*node.Type {
	return node.Supporting([]*node.Type{
		Extract(), Convert(), Compression(), SpreadsheetFile(), MoveBinaryData(), ReadPDF(),
	}, support)
}

// failure is n8n's error of a node's own code for an item.
func failure(item int, format string, args ...any) *engine.NodeError {
	return &engine.NodeError{Name: "NodeOperationError", Message: fmt.Sprintf(format, args...), ItemIndex: &item}
}

// each runs work on every item.
func each(ctx context.Context, call *node.Call, work func(*job) (workflow.Items, error)) (*node.Result, error) {
	return call.ByItem(ctx, func(i int) (workflow.Items, error) {
		items, err := work(&job{ctx: ctx, call: call, item: i})
		if ctx.Err() != nil { // whatever work made of it
			return nil, ctx.Err()
		}
		return items, err
	})
}

// together runs work once on all items, if there are any; what it makes is made of all of them.
func together(ctx context.Context, call *node.Call, work func(*job) (workflow.Items, error)) (*node.Result, error) {
	n := len(call.Input(0))
	if n == 0 {
		return node.Outputs(nil), nil
	}
	items, err := work(&job{ctx: ctx, call: call})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil && !call.Survives(ctx, err):
		return nil, err
	case err != nil:
		items = workflow.Items{node.ErrorItem(err.Error(), nil)}
	}
	for i := range items {
		items[i].PairedItem = workflow.PairedWithAll(n)
	}
	return node.Outputs(items), nil
}

// job is the work on one item, or on all: then the parameters are those of the first.
type job struct {
	ctx  context.Context
	call *node.Call
	item int
	err  error
}

// text reads a parameter; after the first error all are "".
func (j *job) text(path, fallback string) string {
	if j.err != nil {
		return ""
	}
	var value string
	value, j.err = j.call.String(j.ctx, j.item, path, fallback)
	return value
}

func (j *job) flag(path string, fallback bool) bool {
	if j.err != nil {
		return false
	}
	var value bool
	value, j.err = j.call.Bool(j.ctx, j.item, path, fallback)
	return value
}

func (j *job) number(path string, fallback int) int {
	if j.err != nil {
		return 0
	}
	var value int
	value, j.err = j.call.Int(j.ctx, j.item, path, fallback)
	return value
}

func (j *job) input() workflow.Item { return j.call.Inputs[0][j.item] }

// read returns a file of the item whole.
func (j *job) read(property string) ([]byte, error) {
	if j.err != nil {
		return nil, j.err
	}
	file, ok := j.input().Binary[property]
	if !ok {
		return nil, failure(j.item, "This operation expects the node's input data to contain a binary file '%s', but none was found [item %d]", property, j.item)
	}
	data, err := j.call.Files.Read(j.ctx, file, maxParsedBytes)
	if err != nil && j.ctx.Err() == nil {
		return nil, failure(j.item, "%v", err)
	}
	return data, err
}

// save makes a file of what write writes, while it is written.
func (j *job) save(file workflow.Binary, write func(io.Writer) error) (workflow.Binary, error) {
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.CloseWithError(write(w)) // nil is the end of the file
	}()
	saved, err := j.call.Files.Save(j.ctx, file, r)
	_ = r.CloseWithError(errStopped)
	<-done
	return saved, err
}

// errStopped ends the writing of a file that cannot be kept.
var errStopped = errors.New("files: nobody reads on")

// encodingOf finds an encoding by name; "" and what n8n calls utf8 are UTF-8, which stays as it is.
func encodingOf(name string) (encoding.Encoding, error) {
	switch name {
	case "", "utf8", "utf-8":
		return encoding.Nop, nil
	case "latin1", "binary":
		name = "iso-8859-1"
	case "utf16le", "ucs2":
		name = "utf-16le"
	}
	e, err := htmlindex.Get(name)
	if err != nil {
		return nil, fmt.Errorf("the encoding %q is not known", name)
	}
	return e, nil
}

// decode reads text in an encoding.
func decode(data []byte, encoding string) (string, error) {
	e, err := encodingOf(encoding)
	if err != nil {
		return "", err
	}
	text, err := e.NewDecoder().Bytes(data)
	return string(text), err
}

// encode is the opposite of decode.
func encode(text, encoding string) ([]byte, error) {
	e, err := encodingOf(encoding)
	if err != nil {
		return nil, err
	}
	return e.NewEncoder().Bytes([]byte(text))
}
