package images

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"maps"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// editor works on the image of one item.
type editor struct {
	*settings
	img    *image.RGBA
	format string // as in formats
	bytes  int
}

func parseNumber(text string) (float64, error) {
	n, err := strconv.ParseFloat(strings.TrimSpace(strings.Trim(text, `"`)), 64)
	if err == nil && (math.IsNaN(n) || math.Abs(n) > 1e6) {
		err = errors.New("out of range")
	}
	return n, err
}

// edit does what the node asks for.
func (e *editor) edit() (workflow.Item, error) {
	input := e.call.Input(0)[e.item]
	property, operation := e.text("dataPropertyName", "data"), e.text("operation", "border")
	if e.err != nil {
		return input, e.err
	}
	steps := []string{""}
	if operation == "multiStep" {
		n := len(gjson.GetBytes(e.call.Raw("operations"), "operations").Array())
		if raw := gjson.ParseBytes(e.call.Raw("operations")); n == 0 && raw.Exists() && !raw.IsObject() {
			return input, e.failure("The steps of a Multi Step operation cannot be an expression as a whole")
		}
		steps = nil
		for i := range n {
			steps = append(steps, fmt.Sprintf("operations.operations.%d.", i))
		}
	}
	file, there := input.Binary[property]
	for i, prefix := range steps {
		if e.ctx.Err() != nil {
			return input, e.ctx.Err()
		}
		e.prefix = prefix
		name := e.text("operation", "border")
		if i == 0 && name != "create" {
			if err := e.load(input, property); err != nil {
				return input, err
			}
		}
		if name == "information" {
			return workflow.Item{JSON: e.information(), Binary: input.Binary}, e.err
		}
		if err := e.step(name); err != nil {
			return input, err
		}
	}
	e.prefix = ""
	if e.img == nil {
		return input, e.failure("A Multi Step operation needs at least one step")
	}
	if !there {
		file = workflow.Binary{}
	}
	saved, err := e.save(file)
	if err != nil {
		return input, err
	}
	item := workflow.Item{JSON: input.JSON, Binary: maps.Clone(input.Binary)}
	if item.Binary == nil {
		item.Binary = map[string]workflow.Binary{}
	}
	item.Binary[property] = saved
	return item, nil
}

// load decodes an image of the item.
func (e *editor) load(item workflow.Item, property string) error {
	img, format, size, err := e.open(item, property)
	e.img, e.format, e.bytes = img, format, size
	return err
}

func (e *editor) open(item workflow.Item, property string) (*image.RGBA, string, int, error) {
	file, ok := item.Binary[property]
	if !ok {
		return nil, "", 0, node.OperationError(e.item, fmt.Sprintf("This operation expects the node's input data to contain a binary file '%s', but none was found [item %d]", property, e.item),
			"Check that the node before puts out a file under this name.")
	}
	data, err := e.call.Files.Read(e.ctx, file, maxFileBytes)
	if err != nil {
		if e.ctx.Err() != nil {
			return nil, "", 0, e.ctx.Err()
		}
		return nil, "", 0, e.failure("%v", err)
	}
	config, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, "", 0, e.failure("The file '%s' cannot be read as an image (BMP, GIF, JPEG, PNG, TIFF or WebP): %v", property, err)
	}
	if err := e.fits(config.Width, config.Height); err != nil {
		return nil, "", 0, err
	}
	img, err := decode(data)
	if err != nil {
		return nil, "", 0, e.failure("The image '%s' is damaged: %v", property, err)
	}
	// A decoder may find another size than the header announced.
	if err := e.fits(img.Bounds().Dx(), img.Bounds().Dy()); err != nil {
		return nil, "", 0, err
	}
	return toRGBA(img), format, len(data), nil
}

// decode makes a decoder's panic on a damaged file an error.
func decode(data []byte) (img image.Image, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	img, _, err = image.Decode(bytes.NewReader(data))
	return img, err
}

func toRGBA(img image.Image) *image.RGBA {
	b := img.Bounds()
	out := image.NewRGBA(image.Rect(0, 0, b.Dx(), b.Dy()))
	draw.Draw(out, out.Rect, img, b.Min, draw.Src)
	return out
}

// fits refuses a size that is too large to be worked on, or none.
func (s *settings) fits(w, h int) error {
	if w < 1 || h < 1 {
		return s.failure("An image of %d x %d pixels cannot be made", w, h)
	}
	if w > maxSide || h > maxSide || w*h > maxPixels {
		return s.failure("An image of %d x %d pixels is too large: at most %d million pixels can be worked on", w, h, maxPixels/1_000_000)
	}
	return nil
}

// step does one operation.
func (e *editor) step(name string) error {
	var err error
	switch name {
	case "blur":
		err = e.blur()
	case "border":
		err = e.border()
	case "composite":
		err = e.composite()
	case "create":
		err = e.create()
	case "crop":
		err = e.crop()
	case "draw":
		err = e.drawShape()
	case "resize":
		err = e.resize()
	case "rotate":
		err = e.rotate()
	case "shear":
		err = e.shear()
	case "text":
		err = e.write()
	case "transparent":
		err = e.makeTransparent()
	default:
		err = e.failure("The operation %q is not known", name)
	}
	if e.err != nil {
		return e.err
	}
	return err
}

// information tells of an image what GraphicsMagick's identify tells first.
func (e *editor) information() []byte {
	size := e.img.Rect
	var o, dimensions jsonobject.Object
	dimensions.Set("width", strconv.Itoa(size.Dx()))
	dimensions.Set("height", strconv.Itoa(size.Dy()))
	o.Set("format", jsonobject.Quote(strings.ToUpper(e.format)))
	o.Set("size", dimensions.String())
	o.Set("Geometry", jsonobject.Quote(fmt.Sprintf("%dx%d", size.Dx(), size.Dy())))
	o.Set("Filesize", jsonobject.Quote(node.FileSize(int64(e.bytes))))
	return o.JSON()
}

// save encodes the image.
func (e *editor) save(file workflow.Binary) (workflow.Binary, error) {
	chosen, name := strings.ToLower(e.text("options.format", "")), e.text("options.fileName", "")
	quality := int(e.number("options.quality", 0))
	if e.err != nil {
		return file, e.err
	}
	format := chosen
	if format == "" {
		format = e.format
	}
	if format == "jpg" {
		format = "jpeg"
	}
	encode, ok := formats[format]
	if !ok {
		return file, e.failure("Images cannot be written as %q: choose one of bmp, gif, jpeg, png, tiff, webp", format)
	}
	var b bytes.Buffer
	if err := encode(&b, e.img, quality); err != nil {
		return file, e.failure("The image cannot be written as %s: %v", format, err)
	}
	made := workflow.Binary{MimeType: "image/" + format, FileName: file.FileName, FileExtension: format}
	if chosen == "" && file.MimeType == made.MimeType {
		made.FileExtension = file.FileExtension
	}
	switch {
	case name != "":
		made.FileName = name
	case chosen != "" && path.Ext(made.FileName) != "":
		made.FileName = strings.TrimSuffix(made.FileName, path.Ext(made.FileName)) + "." + format
	}
	saved, err := e.call.Files.Save(e.ctx, made, &b)
	if err != nil && e.ctx.Err() == nil {
		return saved, e.failure("%v", err)
	}
	return saved, err
}
