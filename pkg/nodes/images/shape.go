package images

import (
	"image"
	"image/color"
	"image/draw"
	"math"
	"unicode"

	xdraw "golang.org/x/image/draw"
	"golang.org/x/image/math/f64"
)

func filled(w, h int, c color.Color) *image.RGBA {
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.Draw(out, out.Rect, image.NewUniform(c), image.Point{}, draw.Src)
	return out
}

// over lays an image onto another with its corner at a point.
func over(dst *image.RGBA, src *image.RGBA, at image.Point) {
	draw.Draw(dst, src.Rect.Add(at), src, image.Point{}, draw.Over)
}

func (e *editor) size(name string, fallback float64) int {
	return int(math.Round(e.number(name, fallback)))
}

func (e *editor) create() error {
	w, h, background := e.size("width", 50), e.size("height", 50), e.color("backgroundColor", "#ffffff00")
	if err := e.fits(w, h); err != nil || e.err != nil {
		return err
	}
	e.img, e.format = filled(w, h, background), "png"
	return nil
}

func (e *editor) border() error {
	w, h, c := e.size("borderWidth", 10), e.size("borderHeight", 10), e.color("borderColor", "#000000")
	if w < 0 || h < 0 {
		return e.failure("A border of %d x %d pixels cannot be drawn", w, h)
	}
	width, height := e.img.Rect.Dx()+2*w, e.img.Rect.Dy()+2*h
	if err := e.fits(width, height); err != nil || e.err != nil {
		return err
	}
	out := filled(width, height, c)
	draw.Draw(out, e.img.Rect.Add(image.Pt(w, h)), e.img, image.Point{}, draw.Src)
	e.img = out
	return nil
}

func (e *editor) crop() error {
	w, h, x, y := e.size("width", 500), e.size("height", 500), e.size("positionX", 0), e.size("positionY", 0)
	part := image.Rect(x, y, x+max(w, 0), y+max(h, 0)).Intersect(e.img.Rect)
	if e.err == nil && part.Empty() {
		return e.failure("Nothing of the image of %d x %d pixels is left: %d x %d pixels at %d, %d are asked for", e.img.Rect.Dx(), e.img.Rect.Dy(), w, h, x, y)
	}
	e.img = toRGBA(e.img.SubImage(part))
	return nil
}

func (e *editor) resize() error {
	w, h, option := e.number("width", 500), e.number("height", 500), e.text("resizeOption", "maximumArea")
	if e.err != nil {
		return e.err
	}
	width, height := e.newSize(w, h, option)
	if err := e.fits(width, height); err != nil {
		return err
	}
	if width == e.img.Rect.Dx() && height == e.img.Rect.Dy() {
		return nil
	}
	out := image.NewRGBA(image.Rect(0, 0, width, height))
	var scaler xdraw.Interpolator = xdraw.CatmullRom
	if width*2 < e.img.Rect.Dx() || height*2 < e.img.Rect.Dy() {
		scaler = xdraw.BiLinear // averages what becomes one pixel, without ringing
	}
	scaler.Scale(out, out.Rect, e.img, e.img.Rect, draw.Src, nil)
	e.img = out
	return nil
}

// newSize is what a resize asks for. A side that is left out follows from the other.
func (e *editor) newSize(w, h float64, option string) (width, height int) {
	oldW, oldH := float64(e.img.Rect.Dx()), float64(e.img.Rect.Dy())
	scaled := func(x, y float64) (int, int) {
		return max(1, int(math.Round(oldW*x))), max(1, int(math.Round(oldH*y)))
	}
	if option == "percent" {
		if h == 0 {
			h = w
		}
		if w == 0 {
			w = h
		}
		return scaled(w/100, h/100)
	}
	switch {
	case w <= 0 && h <= 0:
		return 0, 0
	case w <= 0:
		w = oldW * h / oldH
	case h <= 0:
		h = oldH * w / oldW
	}
	fit := math.Min(w/oldW, h/oldH)
	switch option {
	case "ignoreAspectRatio":
		return int(math.Round(w)), int(math.Round(h))
	case "maximumArea":
		fit = math.Min(1, math.Sqrt(w*h/(oldW*oldH)))
	case "minimumArea":
		fit = math.Max(w/oldW, h/oldH)
	case "onlyIfLarger":
		fit = math.Min(1, fit)
	case "onlyIfSmaller":
		fit = math.Max(1, fit)
	default:
		e.err = e.failure("The resize option %q is not known", option)
	}
	return scaled(fit, fit)
}

func (e *editor) rotate() error {
	degrees, background := e.number("rotate", 0), e.color("backgroundColor", "#ffffffff")
	radians := math.Mod(degrees, 360) * math.Pi / 180
	sin, cos := math.Sincos(radians)
	if quarter := degrees / 90; quarter == math.Trunc(quarter) { // exact
		sin, cos = math.Round(sin), math.Round(cos)
	}
	return e.transform(cos, -sin, sin, cos, background)
}

func (e *editor) shear() error {
	x, y := e.number("degreesX", 0), e.number("degreesY", 0)
	if math.Abs(x) >= 90 || math.Abs(y) >= 90 {
		return e.failure("An image is sheared by less than 90 degrees")
	}
	tx, ty := math.Tan(x*math.Pi/180), math.Tan(y*math.Pi/180)
	return e.transform(1, tx, ty, 1+tx*ty, color.NRGBA{255, 255, 255, 255})
}

// transform maps the image by the matrix [a b; c d], onto a canvas that holds all of it.
func (e *editor) transform(a, b, c, d float64, background color.Color) error {
	if e.err != nil {
		return e.err
	}
	w, h := float64(e.img.Rect.Dx()), float64(e.img.Rect.Dy())
	xs, ys := []float64{0, a * w, b * h, a*w + b*h}, []float64{0, c * w, d * h, c*w + d*h}
	minX, maxX, minY, maxY := xs[0], xs[0], ys[0], ys[0]
	for i := range xs {
		minX, maxX = math.Min(minX, xs[i]), math.Max(maxX, xs[i])
		minY, maxY = math.Min(minY, ys[i]), math.Max(maxY, ys[i])
	}
	const slack = 1e-6 // of the arithmetic
	width, height := math.Ceil(maxX-minX-slack), math.Ceil(maxY-minY-slack)
	if width > maxSide || height > maxSide {
		width, height = math.Min(width, maxSide+1), math.Min(height, maxSide+1)
	}
	if err := e.fits(int(width), int(height)); err != nil {
		return err
	}
	out := filled(int(width), int(height), background)
	// What is not filled by the image's corners stays in the middle.
	left, top := -minX+(width-(maxX-minX))/2, -minY+(height-(maxY-minY))/2
	var how xdraw.Transformer = xdraw.BiLinear
	if a == math.Trunc(a) && b == math.Trunc(b) && c == math.Trunc(c) && d == math.Trunc(d) {
		how = xdraw.NearestNeighbor
	}
	how.Transform(out, f64.Aff3{a, b, left, c, d, top}, e.img, e.img.Rect, draw.Over, nil)
	e.img = out
	return nil
}

func (e *editor) makeTransparent() error {
	c := e.color("color", "#ff0000")
	for i := 0; i < len(e.img.Pix); i += 4 {
		if p := e.img.Pix[i : i+4 : i+4]; p[3] == 255 && p[0] == c.R && p[1] == c.G && p[2] == c.B {
			p[0], p[1], p[2], p[3] = 0, 0, 0, 0
		}
	}
	return nil
}

// blur is a Gaussian one of a radius (the pixels on each side that count; 0 follows from sigma).
func (e *editor) blur() error {
	radius, sigma := e.size("blur", 5), e.number("sigma", 2)
	if sigma <= 0 || e.err != nil {
		return e.err
	}
	if radius <= 0 {
		radius = int(math.Ceil(3 * sigma))
	}
	radius = min(radius, 500)
	kernel, sum := make([]float64, 2*radius+1), 0.0
	for i := range kernel {
		x := float64(i - radius)
		kernel[i] = math.Exp(-x * x / (2 * sigma * sigma))
		sum += kernel[i]
	}
	for i := range kernel {
		kernel[i] /= sum
	}
	between := image.NewRGBA(e.img.Rect)
	e.smooth(between, e.img, kernel, 4, e.img.Stride, e.img.Rect.Dx(), e.img.Rect.Dy())
	e.smooth(e.img, between, kernel, e.img.Stride, 4, e.img.Rect.Dy(), e.img.Rect.Dx())
	return e.ctx.Err()
}

// smooth applies a kernel along one direction: lines of n pixels which are along bytes apart, the lines across bytes apart.
func (e *editor) smooth(dst, src *image.RGBA, kernel []float64, along, across, n, lines int) {
	radius := len(kernel) / 2
	for line := range lines {
		if e.ctx.Err() != nil {
			return
		}
		start := line * across
		for i := range n {
			var sum [4]float64
			for k, weight := range kernel {
				at := start + min(max(i+k-radius, 0), n-1)*along
				for channel := range sum {
					sum[channel] += weight * float64(src.Pix[at+channel])
				}
			}
			for channel, value := range sum {
				dst.Pix[start+i*along+channel] = uint8(math.Round(math.Min(value, 255)))
			}
		}
	}
}

// drawShape fills a circle (whose end is a point of its line), a rectangle or a line.
func (e *editor) drawShape() error {
	kind, c := e.text("primitive", "rectangle"), e.color("color", "#ff000000")
	x0, y0 := e.number("startPositionX", 50), e.number("startPositionY", 50)
	x1, y1 := e.number("endPositionX", 250), e.number("endPositionY", 250)
	radius := e.number("cornerRadius", 0)
	var distance func(x, y float64) float64 // from the shape's edge, negative inside
	switch kind {
	case "circle":
		r := math.Hypot(x1-x0, y1-y0)
		distance = func(x, y float64) float64 { return math.Hypot(x-x0, y-y0) - r }
		return e.fill(c, distance, x0-r, y0-r, x0+r, y0+r)
	case "rectangle":
		x0, x1 = math.Min(x0, x1), math.Max(x0, x1)
		y0, y1 = math.Min(y0, y1), math.Max(y0, y1)
		halfX, halfY := (x1-x0)/2+0.5, (y1-y0)/2+0.5
		radius = math.Max(0, math.Min(radius, math.Min(halfX, halfY)))
		distance = func(x, y float64) float64 {
			dx, dy := math.Abs(x-(x0+x1)/2)-halfX+radius, math.Abs(y-(y0+y1)/2)-halfY+radius
			return math.Hypot(math.Max(dx, 0), math.Max(dy, 0)) + math.Min(math.Max(dx, dy), 0) - radius
		}
	case "line":
		length := (x1-x0)*(x1-x0) + (y1-y0)*(y1-y0)
		distance = func(x, y float64) float64 {
			t := 0.0
			if length > 0 {
				t = math.Max(0, math.Min(1, ((x-x0)*(x1-x0)+(y-y0)*(y1-y0))/length))
			}
			return math.Hypot(x-x0-t*(x1-x0), y-y0-t*(y1-y0)) - 0.5
		}
	default:
		return e.failure("%q cannot be drawn: choose circle, line or rectangle", kind)
	}
	return e.fill(c, distance, math.Min(x0, x1), math.Min(y0, y1), math.Max(x0, x1), math.Max(y0, y1))
}

// fill paints a shape that lies within a box.
func (e *editor) fill(c color.NRGBA, distance func(x, y float64) float64, x0, y0, x1, y1 float64) error {
	if e.err != nil {
		return e.err
	}
	box := image.Rect(int(x0)-2, int(y0)-2, int(x1)+3, int(y1)+3).Intersect(e.img.Rect)
	mask := image.NewAlpha(box)
	for y := box.Min.Y; y < box.Max.Y; y++ {
		if e.ctx.Err() != nil {
			return e.ctx.Err()
		}
		for x := box.Min.X; x < box.Max.X; x++ {
			cover := math.Max(0, math.Min(1, 0.5-distance(float64(x), float64(y))))
			mask.Pix[mask.PixOffset(x, y)] = uint8(math.Round(255 * cover))
		}
	}
	draw.DrawMask(e.img, box, image.NewUniform(c), image.Point{}, mask, box.Min, draw.Over)
	return nil
}

// wrap breaks a text into lines of up to n letters, between words.
func wrap(text string, n int) (lines []string) {
	for _, paragraph := range splitLines(text) {
		line := ""
		for _, word := range splitWords(paragraph) {
			if line != "" && n > 0 && len([]rune(line))+1+len([]rune(word)) > n {
				lines, line = append(lines, line), ""
			}
			if line != "" {
				line += " "
			}
			line += word
		}
		lines = append(lines, line)
	}
	return lines
}

func printable(r rune) rune {
	if unicode.IsControl(r) {
		return ' '
	}
	return r
}
