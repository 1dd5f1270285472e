package images

import (
	"image"
	"math"
	"strings"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/gobolditalic"
	"golang.org/x/image/font/gofont/goitalic"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

func splitLines(text string) []string {
	return strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
}

func splitWords(line string) []string { return strings.Split(strings.Map(printable, line), " ") }

// fonts are parsed once.
var fonts = map[string]func() (*opentype.Font, error){
	"regular": parsed(goregular.TTF), "bold": parsed(gobold.TTF), "italic": parsed(goitalic.TTF),
	"bolditalic": parsed(gobolditalic.TTF), "mono": parsed(gomono.TTF),
}

func parsed(data []byte) func() (*opentype.Font, error) {
	return sync.OnceValues(func() (*opentype.Font, error) { return opentype.Parse(data) })
}

// fontFor is the font that is nearest to the one that was asked for, which is a name or the path of a file on n8n's machine.
func fontFor(name string) (*opentype.Font, error) {
	name = strings.ToLower(name)
	has := func(words ...string) bool {
		for _, word := range words {
			if strings.Contains(name, word) {
				return true
			}
		}
		return false
	}
	kind := ""
	if has("bold", "black", "heavy") {
		kind = "bold"
	}
	if has("italic", "oblique") {
		kind += "italic"
	}
	switch {
	case has("mono", "courier", "consol"):
		kind = "mono"
	case kind == "":
		kind = "regular"
	}
	return fonts[kind]()
}

// write draws a text, its first line standing on positionY.
func (e *editor) write() error {
	text, size, c := e.text("text", ""), e.number("fontSize", 18), e.color("fontColor", "#000000")
	x, y, length := e.number("positionX", 50), e.number("positionY", 50), e.size("lineLength", 80)
	name := e.text("font", "")
	if prefix := e.prefix; name == "" || name == "default" {
		e.prefix = ""
		name = e.text("options.font", "")
		e.prefix = prefix
	}
	if e.err != nil {
		return e.err
	}
	if size < 1 || size > 2000 {
		return e.failure("A text cannot be drawn in size %v", size)
	}
	parsed, err := fontFor(name)
	if err != nil {
		return e.failure("%v", err)
	}
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingNone})
	if err != nil {
		return e.failure("%v", err)
	}
	defer face.Close()
	drawer := font.Drawer{Dst: e.img, Src: image.NewUniform(c), Face: face}
	advance := math.Ceil(size * 1.17)
	for i, line := range wrap(text, length) {
		if e.ctx.Err() != nil {
			return e.ctx.Err()
		}
		baseline := y + float64(i)*advance
		if baseline-2*size > float64(e.img.Rect.Dy()) {
			break // below the image
		}
		drawer.Dot = fixed.Point26_6{X: fixed.Int26_6(x * 64), Y: fixed.Int26_6(baseline * 64)}
		drawer.DrawString(line)
	}
	return nil
}
