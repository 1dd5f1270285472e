// Package images holds the Edit Image node. Images are decoded whole into memory, so their size is
// bounded before that: by their bytes, and by the pixels that their header announces.
//
// Colours are written as its editor writes them: "#rrggbb", or "#rrggbbaa" where aa is the opacity as
// GraphicsMagick reads it: 00 is opaque and ff is not to be seen. Names of colours are known too.
package images

import (
	"context"
	"fmt"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// TypeEdit is the name of the node type.
const TypeEdit = "n8n-nodes-base.editImage"

const (
	// maxFileBytes bounds the file of an image, maxPixels what it may hold, before and after each step: 200 MB in memory.
	maxFileBytes = 64 << 20
	maxPixels    = 50_000_000
	// maxSide bounds width and height, so that their product cannot overflow.
	maxSide = 1 << 16
)

// Types returns the node types.
func Types() []*node.Type {
	return node.Supporting([]*node.Type{{
		Spec:    workflow.Spec{Type: TypeEdit, Versions: []float64{1}},
		Execute: execute,
	}}, map[string]node.Support{TypeEdit: {
		Options: []string{"fileName", "font", "format", "quality"},
		Note: "images of up to 50 million pixels; the first picture of an animation; texts in the Go fonts (regular, bold, italic, mono, by the " +
			"name of the font that is asked for), which have Latin, Greek and Cyrillic letters; WebP is written without loss",
	}})
}

func execute(ctx context.Context, call *node.Call) (*node.Result, error) {
	return call.ByItem(ctx, func(i int) (workflow.Items, error) {
		e := &editor{settings: &settings{ctx: ctx, call: call, item: i}}
		item, err := e.edit()
		if err != nil {
			return nil, err
		}
		return workflow.Items{item}, nil
	})
}

// settings read the parameters of one item, or of one step of it. After the first error all are empty.
type settings struct {
	ctx    context.Context
	call   *node.Call
	item   int
	prefix string // of a step
	err    error
}

func (s *settings) text(name, fallback string) string {
	if s.err != nil {
		return ""
	}
	var value string
	value, s.err = s.call.String(s.ctx, s.item, s.prefix+name, fallback)
	return value
}

// number reads a number; what is left empty is 0.
func (s *settings) number(name string, fallback float64) float64 {
	if s.err != nil {
		return 0
	}
	raw, err := s.call.Param(s.ctx, s.item, s.prefix+name)
	switch text := string(raw); {
	case err != nil:
		s.err = err
		return 0
	case raw == nil:
		return fallback
	case text == "null", text == `""`:
		return 0
	default:
		n, err := parseNumber(text)
		if err != nil {
			s.err = s.failure("%s is not a number: %s", name, text)
		}
		return n
	}
}

func (s *settings) failure(format string, args ...any) error {
	return node.OperationError(s.item, fmt.Sprintf(format, args...), "")
}
