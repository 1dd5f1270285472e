package images

import (
	"image"
	"maps"
	"slices"
	"strings"
)

// operators of a composite, on one premultiplied channel (or the alpha itself) of what is laid on and of what is below, with
// their alphas; all are 0 to 255.
var operators = map[string]func(above, below, aboveAlpha, belowAlpha int) int{
	"Over":       func(s, d, sa, _ int) int { return s + d*(255-sa)/255 },
	"Copy":       func(s, _, _, _ int) int { return s },
	"In":         func(s, _, _, da int) int { return s * da / 255 },
	"Out":        func(s, _, _, da int) int { return s * (255 - da) / 255 },
	"Atop":       func(s, d, sa, da int) int { return (s*da + d*(255-sa)) / 255 },
	"Xor":        func(s, d, sa, da int) int { return (s*(255-da) + d*(255-sa)) / 255 },
	"Plus":       func(s, d, _, _ int) int { return s + d },
	"Add":        func(s, d, _, _ int) int { return (s + d) % 256 },
	"Minus":      func(s, d, _, _ int) int { return d - s },
	"Subtract":   func(s, d, _, _ int) int { return (d - s + 256) % 256 },
	"Difference": func(s, d, _, _ int) int { return max(s-d, d-s) },
	"Multiply":   func(s, d, sa, da int) int { return (s*d + s*(255-da) + d*(255-sa)) / 255 },
}

// colorOnly are the operators whose alpha is that of Over: they compute with colours.
var colorOnly = map[string]bool{"Minus": true, "Subtract": true, "Difference": true, "Multiply": true, "Add": true}

// composite lays another image of the item onto the image.
func (e *editor) composite() error {
	property, operator := e.text("dataPropertyNameComposite", ""), e.text("operator", "Over")
	at := image.Pt(e.size("positionX", 0), e.size("positionY", 0))
	if e.err != nil {
		return e.err
	}
	combine, ok := operators[operator]
	if !ok {
		return e.failure("The operator %q is not supported: choose one of %s", operator, strings.Join(slices.Sorted(maps.Keys(operators)), ", "))
	}
	above, _, _, err := e.open(e.call.Input(0)[e.item], property)
	if err != nil {
		return err
	}
	alpha := combine
	if colorOnly[operator] {
		alpha = operators["Over"]
	}
	area := above.Rect.Add(at).Intersect(e.img.Rect)
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			s := above.Pix[above.PixOffset(x-at.X, y-at.Y):][:4:4]
			d := e.img.Pix[e.img.PixOffset(x, y):][:4:4]
			sa, da := int(s[3]), int(d[3])
			out := min(max(alpha(sa, da, sa, da), 0), 255)
			for channel := range 3 {
				// A premultiplied colour is never more than its alpha.
				d[channel] = uint8(min(max(combine(int(s[channel]), int(d[channel]), sa, da), 0), out))
			}
			d[3] = uint8(out)
		}
	}
	return nil
}
