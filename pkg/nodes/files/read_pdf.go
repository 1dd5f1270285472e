package files

import (
	"context"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// ReadPDF reads the text of a PDF. Extract from File came after it.
func ReadPDF() *node.Type {
	return &node.Type{
		Spec: workflow.Spec{Type: base + "readPDF", Versions: []float64{1}},
		Execute: func(ctx context.Context, call *node.Call) (*node.Result, error) {
			return each(ctx, call, func(j *job) (workflow.Items, error) {
				password := ""
				if j.flag("encrypted", false) {
					password = j.text("password", "")
				}
				data, err := j.read(j.text("binaryPropertyName", "data"))
				if err != nil {
					return nil, err
				}
				items, err := j.pdf(data, password)
				for i := range items {
					items[i].Binary = j.input().Binary
				}
				return items, err
			})
		},
	}
}
