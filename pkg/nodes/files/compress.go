package files

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// maxUnpacked bounds the files of an archive, by number; their size is bounded like that of
// any file.
const maxUnpacked = 1000

// Compression packs files into a ZIP archive or with gzip, and unpacks them.
func Compression() *node.Type {
	return &node.Type{
		Spec: workflow.Spec{Type: base + "compression", Versions: []float64{1, 1.1}},
		Execute: func(ctx context.Context, call *node.Call) (*node.Result, error) {
			return each(ctx, call, func(j *job) (workflow.Items, error) {
				properties := names(j.text("binaryPropertyName", "data"))
				item := workflow.Item{JSON: j.input().JSON, Binary: map[string]workflow.Binary{}}
				operation, err := j.text("operation", "decompress"), error(nil)
				switch {
				case j.err != nil:
					err = j.err
				case operation == "compress":
					err = j.pack(properties, &item)
				default:
					err = j.unpack(properties, &item)
				}
				return workflow.Items{item}, err
			})
		},
	}
}

// names splits a list with commas.
func names(list string) (out []string) {
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	return out
}

// open reads a file of the item while it is worked on.
func (j *job) open(property string) (io.ReadCloser, workflow.Binary, error) {
	file, ok := j.input().Binary[property]
	if !ok {
		return nil, file, failure(j.item, "This operation expects the node's input data to contain a binary file '%s', but none was found [item %d]", property, j.item)
	}
	r, err := j.call.Files.Open(j.ctx, file)
	if err != nil {
		return nil, file, failure(j.item, "%v", err)
	}
	return r, file, nil
}

func (j *job) pack(properties []string, item *workflow.Item) error {
	format, output, prefix := j.text("outputFormat", "zip"), j.text("binaryPropertyOutput", "data"), j.text("outputPrefix", "data")
	name := j.text("fileName", "")
	if j.err != nil {
		return j.err
	}
	if format == "gzip" {
		for i, property := range properties {
			r, file, err := j.open(property)
			if err != nil {
				return err
			}
			packed := workflow.Binary{FileName: file.FileName + ".gz", MimeType: "application/gzip"}
			if name != "" && len(properties) == 1 {
				packed.FileName = name
			}
			target := output
			if j.call.Node.TypeVersion < 1.1 || len(properties) > 1 {
				target = prefix + strconv.Itoa(i)
			}
			item.Binary[target], err = j.save(packed, func(w io.Writer) error {
				z := gzip.NewWriter(w)
				_, err := io.Copy(z, r)
				return errors.Join(err, z.Close())
			})
			_ = r.Close()
			if err != nil {
				return failure(j.item, "%v", err)
			}
		}
		return nil
	}
	saved, err := j.save(workflow.Binary{FileName: name, MimeType: "application/zip"}, func(w io.Writer) error {
		z := zip.NewWriter(w)
		for _, property := range properties {
			r, file, err := j.open(property)
			if err != nil {
				return err
			}
			inside := file.FileName
			if inside == "" {
				inside = property
			}
			entry, err := z.Create(inside)
			if err == nil {
				_, err = io.Copy(entry, r)
			}
			_ = r.Close()
			if err != nil {
				return err
			}
		}
		return z.Close()
	})
	if err != nil {
		return failure(j.item, "%v", err)
	}
	item.Binary[output] = saved
	return nil
}

func (j *job) unpack(properties []string, item *workflow.Item) error {
	prefix := j.text("outputPrefix", "file_")
	if j.err != nil {
		return j.err
	}
	keep := func(name string, r io.Reader) error {
		if len(item.Binary) == maxUnpacked {
			return failure(j.item, "The archives hold more than %d files", maxUnpacked)
		}
		saved, err := j.call.Files.Save(j.ctx, workflow.Binary{FileName: name}, r)
		if err != nil {
			return failure(j.item, "%q cannot be unpacked: %v", name, err)
		}
		item.Binary[prefix+strconv.Itoa(len(item.Binary))] = saved
		return nil
	}
	for _, property := range properties {
		data, err := j.read(property)
		if err != nil {
			return err
		}
		if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
			z, err := gzip.NewReader(bytes.NewReader(data))
			if err != nil {
				return failure(j.item, "%v", err)
			}
			if err := keep(strings.TrimSuffix(j.input().Binary[property].FileName, ".gz"), z); err != nil {
				return err
			}
			continue
		}
		z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return failure(j.item, "The file '%s' is neither a ZIP archive nor compressed with gzip", property)
		}
		for _, f := range z.File {
			if f.FileInfo().IsDir() {
				continue
			}
			r, err := f.Open()
			if err == nil {
				err = keep(path.Base(strings.ReplaceAll(f.Name, `\`, "/")), r)
				_ = r.Close()
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
