package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"strings"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// problem is what a person is told of a failed access. A failure of the system is told without the paths that it names: they
// are relative to folders that the workflow does not know.
func problem(ctx context.Context, item int, message string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	reason := err.Error()
	var failed *fs.PathError
	if errors.As(err, &failed) {
		reason = failed.Err.Error()
	}
	return node.OperationError(item, message+": "+reason, "")
}

func (f folders) readWriteFile(ctx context.Context, call *node.Call) (*node.Result, error) {
	return call.ByItem(ctx, func(i int) (workflow.Items, error) {
		operation, err := call.String(ctx, i, "operation", "read")
		switch {
		case err != nil:
			return nil, err
		case operation == "read":
			return f.readMatches(ctx, call, i)
		case operation == "write":
			return f.writeFile(ctx, call, i)
		}
		return nil, node.OperationError(i, fmt.Sprintf("The operation %q is not known: choose read or write", operation), "")
	})
}

// readMatches makes an item of each file that a selector is met by; none is no failure.
func (f folders) readMatches(ctx context.Context, call *node.Call, i int) (workflow.Items, error) {
	selector, err := call.String(ctx, i, "fileSelector", "")
	if err != nil {
		return nil, err
	}
	var options struct {
		FileName         string `json:"fileName"`
		FileExtension    string `json:"fileExtension"`
		MimeType         string `json:"mimeType"`
		DataPropertyName string `json:"dataPropertyName"`
	}
	if err := call.ParamInto(ctx, i, "options", &options); err != nil {
		return nil, err
	}
	if options.DataPropertyName == "" {
		options.DataPropertyName = "data"
	}
	places, err := f.match(ctx, selector)
	if err != nil {
		return nil, problem(ctx, i, fmt.Sprintf("The file %q could not be accessed", selector), err)
	}
	items := workflow.Items{}
	for _, p := range places {
		file := workflow.Binary{FileName: path.Base(p.name), FileExtension: strings.TrimPrefix(options.FileExtension, "."), MimeType: options.MimeType}
		if options.FileName != "" {
			file.FileName = options.FileName
		}
		file, err := save(ctx, call, i, p, file)
		if err != nil {
			return nil, err
		}
		var o jsonobject.Object
		for _, field := range [][2]string{
			{"mimeType", file.MimeType}, {"fileType", file.FileType}, {"fileName", file.FileName},
			{"directory", path.Dir(p.String())}, {"fileExtension", file.FileExtension}, {"fileSize", file.FileSize},
		} {
			if field[1] != "" {
				o.Set(field[0], jsonobject.Quote(field[1]))
			}
		}
		items = append(items, workflow.Item{JSON: o.JSON(), Binary: map[string]workflow.Binary{options.DataPropertyName: file}})
	}
	return items, nil
}

// save makes a file of items of a file on disk.
func save(ctx context.Context, call *node.Call, i int, p place, file workflow.Binary) (saved workflow.Binary, err error) {
	err = p.read(func(r io.Reader) error {
		saved, err = call.Files.Save(ctx, file, r)
		return err
	})
	if errors.Is(err, node.ErrFileTooLarge) {
		return saved, problem(ctx, i, fmt.Sprintf("The file %q could not be read", p), fmt.Errorf("%w; whoever runs the workers can raise REPRISE_MAX_FILE_BYTES", err))
	}
	if err != nil {
		return saved, problem(ctx, i, fmt.Sprintf("The file %q could not be read", p), err)
	}
	return saved, nil
}

func (f folders) writeBinaryFile(ctx context.Context, call *node.Call) (*node.Result, error) {
	return call.ByItem(ctx, func(i int) (workflow.Items, error) { return f.writeFile(ctx, call, i) })
}

// writeFile writes a file of the item, which goes on with the path as its fileName.
func (f folders) writeFile(ctx context.Context, call *node.Call, i int) (workflow.Items, error) {
	name, err := call.String(ctx, i, "fileName", "")
	if err != nil {
		return nil, err
	}
	property, err := call.String(ctx, i, "dataPropertyName", "data")
	if err != nil {
		return nil, err
	}
	add, err := call.Bool(ctx, i, "options.append", false)
	if err != nil {
		return nil, err
	}
	message := fmt.Sprintf("The file %q is not writable", name)
	p, err := f.find(name)
	if err != nil {
		return nil, problem(ctx, i, message, err)
	}
	item := call.Input(0)[i]
	file, ok := item.Binary[property]
	if !ok {
		return nil, node.OperationError(i, fmt.Sprintf("This operation expects the node's input data to contain a binary file '%s', but none was found [item %d]", property, i),
			"Check that the node before puts out a file under this name.")
	}
	r, err := call.Files.Open(ctx, file)
	if err != nil {
		return nil, problem(ctx, i, message, err)
	}
	defer r.Close()
	err = p.write(r, add, maxBytes(call))
	if errors.Is(err, node.ErrFileTooLarge) {
		err = fmt.Errorf("%w: more than %s; whoever runs the workers can raise REPRISE_MAX_FILE_BYTES", err, node.FileSize(maxBytes(call)))
	}
	if err != nil {
		return nil, problem(ctx, i, message, err)
	}
	object := jsonobject.Parse(item.JSON)
	object.Set("fileName", jsonobject.Quote(name))
	return workflow.Items{{JSON: object.JSON(), Binary: item.Binary}}, nil
}

func maxBytes(call *node.Call) int64 {
	if call.Files == nil || call.Files.MaxBytes <= 0 {
		return node.DefaultMaxFileBytes
	}
	return call.Files.MaxBytes
}

// readBinaryFile puts one file on each item.
func (f folders) readBinaryFile(ctx context.Context, call *node.Call) (*node.Result, error) {
	return call.ByItem(ctx, func(i int) (workflow.Items, error) {
		name, err := call.String(ctx, i, "filePath", "")
		if err != nil {
			return nil, err
		}
		property, err := call.String(ctx, i, "dataPropertyName", "data")
		if err != nil {
			return nil, err
		}
		p, err := f.find(name)
		if err != nil {
			return nil, problem(ctx, i, fmt.Sprintf("The file %q could not be accessed", name), err)
		}
		file, err := save(ctx, call, i, p, workflow.Binary{FileName: path.Base(p.name)})
		if err != nil {
			return nil, err
		}
		item := call.Input(0)[i]
		item.Binary = maps.Clone(item.Binary)
		if item.Binary == nil {
			item.Binary = map[string]workflow.Binary{}
		}
		item.Binary[property] = file
		return workflow.Items{item}, nil
	})
}

// readBinaryFiles makes an item of each file that the selector of the first item is met by.
func (f folders) readBinaryFiles(ctx context.Context, call *node.Call) (*node.Result, error) {
	once := *call
	if input := call.Input(0); len(input) > 1 {
		once.Inputs = []workflow.Items{input[:1]}
	}
	return once.ByItem(ctx, func(i int) (workflow.Items, error) {
		selector, err := call.String(ctx, i, "fileSelector", "")
		if err != nil {
			return nil, err
		}
		property, err := call.String(ctx, i, "dataPropertyName", "data")
		if err != nil {
			return nil, err
		}
		places, err := f.match(ctx, selector)
		if err != nil {
			return nil, problem(ctx, i, fmt.Sprintf("The file %q could not be accessed", selector), err)
		}
		items := workflow.Items{}
		for _, p := range places {
			file, err := save(ctx, call, i, p, workflow.Binary{FileName: path.Base(p.name)})
			if err != nil {
				return nil, err
			}
			items = append(items, workflow.Item{JSON: []byte("{}"), Binary: map[string]workflow.Binary{property: file}})
		}
		return items, nil
	})
}
