package images

import (
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"strconv"
	"strings"

	"github.com/HugoSmits86/nativewebp"
	"golang.org/x/image/bmp"
	"golang.org/x/image/colornames"
	"golang.org/x/image/tiff"
	_ "golang.org/x/image/webp" // decoder
)

// formats are the writers; quality is 1 to 100, 0 is the format's own.
var formats = map[string]func(w io.Writer, img *image.RGBA, quality int) error{
	"bmp":  func(w io.Writer, img *image.RGBA, _ int) error { return bmp.Encode(w, img) },
	"gif":  func(w io.Writer, img *image.RGBA, _ int) error { return gif.Encode(w, img, nil) },
	"png":  func(w io.Writer, img *image.RGBA, _ int) error { return png.Encode(w, img) },
	"webp": func(w io.Writer, img *image.RGBA, _ int) error { return nativewebp.Encode(w, img, nil) },
	"tiff": func(w io.Writer, img *image.RGBA, _ int) error {
		return tiff.Encode(w, img, &tiff.Options{Compression: tiff.Deflate, Predictor: true})
	},
	"jpeg": func(w io.Writer, img *image.RGBA, quality int) error {
		if quality < 1 || quality > 100 {
			quality = jpeg.DefaultQuality
		}
		return jpeg.Encode(w, onWhite(img), &jpeg.Options{Quality: quality})
	},
}

// onWhite is an image without transparency, for a format that has none.
func onWhite(img *image.RGBA) *image.RGBA {
	if img.Opaque() {
		return img
	}
	out := filled(img.Rect.Dx(), img.Rect.Dy(), color.NRGBA{255, 255, 255, 255})
	over(out, img, image.Point{})
	return out
}

// parseColor reads a colour of the editor.
func parseColor(text string) (color.NRGBA, bool) {
	name := strings.ToLower(strings.TrimSpace(text))
	if named, ok := colornames.Map[name]; ok {
		return color.NRGBA(named), true // all of them are opaque
	}
	if name == "transparent" || name == "none" {
		return color.NRGBA{}, true
	}
	digits, ok := strings.CutPrefix(name, "#")
	if !ok {
		return color.NRGBA{}, false
	}
	if len(digits) == 3 || len(digits) == 4 {
		long := ""
		for _, d := range digits {
			long += strings.Repeat(string(d), 2)
		}
		digits = long
	}
	if len(digits) == 6 {
		digits += "00"
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || len(digits) != 8 {
		return color.NRGBA{}, false
	}
	return color.NRGBA{R: uint8(n >> 24), G: uint8(n >> 16), B: uint8(n >> 8), A: 255 - uint8(n)}, true
}

func (s *settings) color(name, fallback string) color.NRGBA {
	text := s.text(name, fallback)
	if text == "" {
		text = fallback
	}
	c, ok := parseColor(text)
	if !ok && s.err == nil {
		s.err = s.failure("%s: %q is no colour; write it like #ff0000", name, text)
	}
	return c
}
