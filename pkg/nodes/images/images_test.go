package images

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

var (
	red, white, black = color.RGBA{255, 0, 0, 255}, color.RGBA{255, 255, 255, 255}, color.RGBA{0, 0, 0, 255}
	blue, nothing     = color.RGBA{0, 0, 255, 255}, color.RGBA{}
)

// half is an image whose left half is red and whose right half is blue.
func half(w, h int) *image.RGBA {
	img := filled(w, h, blue)
	for y := range h {
		for x := range w / 2 {
			img.SetRGBA(x, y, red)
		}
	}
	return img
}

func encoded(t testing.TB, img *image.RGBA, format string) workflow.Binary {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, formats[format](&b, img, 100))
	return workflow.Binary{FileName: "in." + format, MimeType: "image/" + format, FileExtension: format, Data: base64.StdEncoding.EncodeToString(b.Bytes())}
}

func input(t testing.TB, img *image.RGBA, format string) workflow.Items {
	items := nodestest.Items(`{"k":1}`)
	items[0].Binary = map[string]workflow.Binary{"data": encoded(t, img, format)}
	return items
}

func decoded(t testing.TB, file workflow.Binary) (*image.RGBA, string) {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(file.Data)
	require.NoError(t, err)
	img, format, err := image.Decode(bytes.NewReader(data))
	require.NoError(t, err)
	return toRGBA(img), format
}

// run edits an image, which goes in and comes out as a PNG.
func run(t testing.TB, parameters string, img *image.RGBA) *image.RGBA {
	t.Helper()
	item := nodestest.Run(t, Types()[0], parameters, input(t, img, "png"))[0][0]
	require.Equal(t, `{"k":1}`, string(item.JSON))
	out, format := decoded(t, item.Binary["data"])
	require.Equal(t, "png", format)
	return out
}

func refused(t testing.TB, parameters string, items workflow.Items) string {
	t.Helper()
	_, err := Types()[0].Execute(t.Context(), nodestest.Call(Types()[0], parameters, items))
	require.Error(t, err, parameters)
	return err.Error()
}

func size(img *image.RGBA) string { return fmt.Sprintf("%dx%d", img.Rect.Dx(), img.Rect.Dy()) }

func TestResize(t *testing.T) {
	for _, tt := range []struct{ w, h, option, want string }{
		{"50", "50", "ignoreAspectRatio", "50x50"},
		{"50", "50", "onlyIfLarger", "50x25"},
		{"500", "500", "onlyIfLarger", "100x50"},
		{"500", "500", "onlyIfSmaller", "500x250"},
		{"50", "50", "onlyIfSmaller", "100x50"},
		{"40", "40", "minimumArea", "80x40"},
		{"50", "25", "maximumArea", "50x25"},
		{"500", "500", "maximumArea", "100x50"},
		{"50", "200", "percent", "50x100"},
		{"50", "null", "ignoreAspectRatio", "50x25"},
		{"\"40\"", "\"\"", "onlyIfLarger", "40x20"},
	} {
		out := run(t, `{"operation":"resize","width":`+tt.w+`,"height":`+tt.h+`,"resizeOption":"`+tt.option+`"}`, half(100, 50))
		require.Equal(t, tt.want, size(out), "%+v", tt)
		require.Equal(t, red, out.RGBAAt(1, 1), "%+v", tt)
		require.Equal(t, blue, out.RGBAAt(out.Rect.Dx()-2, 1), "%+v", tt)
	}
	require.Contains(t, refused(t, `{"operation":"resize","width":10,"height":10,"resizeOption":"x"}`, input(t, half(4, 4), "png")), `option "x" is not known`)
	require.Contains(t, refused(t, `{"operation":"resize","width":0,"height":0}`, input(t, half(4, 4), "png")), "0 x 0")
	require.Contains(t, refused(t, `{"operation":"resize","width":"wide"}`, input(t, half(4, 4), "png")), "width is not a number")
}

func TestCropAndBorder(t *testing.T) {
	out := run(t, `{"operation":"crop","width":20,"height":10,"positionX":40,"positionY":5}`, half(100, 50))
	require.Equal(t, "20x10", size(out))
	require.Equal(t, red, out.RGBAAt(9, 0))
	require.Equal(t, blue, out.RGBAAt(10, 0))
	require.Equal(t, "10x50", size(run(t, `{"operation":"crop","width":500,"height":500,"positionX":90}`, half(100, 50))))
	require.Contains(t, refused(t, `{"operation":"crop","positionX":100}`, input(t, half(100, 50), "png")), "Nothing of the image")

	out = run(t, `{"operation":"border","borderWidth":3,"borderHeight":2,"borderColor":"#00f"}`, filled(10, 10, red))
	require.Equal(t, "16x14", size(out))
	require.Equal(t, []color.RGBA{blue, blue, red, red, blue}, []color.RGBA{out.RGBAAt(2, 7), out.RGBAAt(8, 1), out.RGBAAt(3, 2), out.RGBAAt(12, 11), out.RGBAAt(13, 11)})
}

func TestRotateAndShear(t *testing.T) {
	out := run(t, `{"operation":"rotate","rotate":90}`, half(100, 50))
	require.Equal(t, "50x100", size(out))
	require.Equal(t, []color.RGBA{red, blue}, []color.RGBA{out.RGBAAt(25, 0), out.RGBAAt(25, 99)}, "clockwise: left becomes top")
	require.Equal(t, blue, run(t, `{"operation":"rotate","rotate":-180}`, half(100, 50)).RGBAAt(0, 0))
	out = run(t, `{"operation":"rotate","rotate":45,"backgroundColor":"#ffffff00"}`, half(100, 100))
	require.Equal(t, "142x142", size(out))
	require.Equal(t, white, out.RGBAAt(0, 0))
	require.Equal(t, nothing, run(t, `{"operation":"rotate","rotate":45}`, half(100, 100)).RGBAAt(0, 0), "the background is not to be seen by default")
	require.Equal(t, "40x20", size(run(t, `{"operation":"shear","degreesX":45}`, filled(20, 20, red))))
	require.Contains(t, refused(t, `{"operation":"shear","degreesX":90}`, input(t, half(4, 4), "png")), "less than 90")
	require.Contains(t, refused(t, `{"operation":"shear","degreesX":89.9999}`, input(t, half(2000, 2000), "png")), "too large")
}

func TestDraw(t *testing.T) {
	out := run(t, `{"operation":"draw","primitive":"rectangle","color":"#ff0000","startPositionX":10,"startPositionY":10,"endPositionX":19,"endPositionY":14}`, filled(40, 40, white))
	require.Equal(t, []color.RGBA{white, red, red, white, white}, []color.RGBA{out.RGBAAt(9, 12), out.RGBAAt(10, 10), out.RGBAAt(19, 14), out.RGBAAt(20, 12), out.RGBAAt(12, 15)})
	out = run(t, `{"operation":"draw","color":"#ff0000","cornerRadius":8,"startPositionX":0,"startPositionY":0,"endPositionX":39,"endPositionY":39}`, filled(40, 40, white))
	require.Equal(t, []color.RGBA{white, red, red}, []color.RGBA{out.RGBAAt(0, 0), out.RGBAAt(20, 0), out.RGBAAt(20, 20)})
	out = run(t, `{"operation":"draw","primitive":"circle","color":"red","startPositionX":20,"startPositionY":20,"endPositionX":30,"endPositionY":20}`, filled(40, 40, white))
	require.Equal(t, []color.RGBA{red, red, white, white}, []color.RGBA{out.RGBAAt(20, 11), out.RGBAAt(11, 20), out.RGBAAt(12, 12), out.RGBAAt(31, 20)})
	out = run(t, `{"operation":"draw","primitive":"line","startPositionX":0,"startPositionY":5,"endPositionX":39,"endPositionY":5}`, filled(40, 40, white))
	require.Equal(t, []color.RGBA{red, white}, []color.RGBA{out.RGBAAt(20, 5), out.RGBAAt(20, 7)})
	out = run(t, `{"operation":"draw","color":"#0000ff80"}`, filled(300, 300, red))
	require.InDelta(t, 127, int(out.RGBAAt(100, 100).B), 2, "half to be seen")
	run(t, `{"operation":"draw","primitive":"circle","startPositionX":-900000,"startPositionY":900000,"endPositionX":900000,"endPositionY":-900000}`, filled(30, 30, red))
	require.Contains(t, refused(t, `{"operation":"draw","primitive":"star"}`, input(t, half(4, 4), "png")), "choose circle")
	require.Contains(t, refused(t, `{"operation":"draw","color":"reddish"}`, input(t, half(4, 4), "png")), "is no colour")
}

// ink is the box of what is not white.
func ink(img *image.RGBA) (box image.Rectangle) {
	for y := range img.Rect.Dy() {
		for x := range img.Rect.Dx() {
			if img.RGBAAt(x, y) != white {
				box = box.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	return box
}

func TestText(t *testing.T) {
	one := ink(run(t, `{"operation":"text","text":"Hxx","fontSize":40,"positionX":20,"positionY":60}`, filled(300, 200, white)))
	require.InDelta(t, 60, one.Max.Y, 2, "it stands on its position")
	require.InDelta(t, 22, one.Min.X, 4)
	require.InDelta(t, 29, one.Dy(), 4)
	two := ink(run(t, `{"operation":"text","text":"Hxx Hxx","lineLength":4,"fontSize":40,"positionX":20,"positionY":60}`, filled(300, 200, white)))
	require.InDelta(t, 60+47, two.Max.Y, 3, "words that do not fit are on the next line")
	require.Equal(t, one.Dx(), two.Dx())
	bold := ink(run(t, `{"operation":"text","text":"Hxx","fontSize":40,"positionX":20,"positionY":60,"options":{"font":"/usr/share/fonts/DejaVuSans-Bold.ttf"}}`, filled(300, 200, white)))
	require.Greater(t, bold.Dx(), one.Dx())
	colored := run(t, `{"operation":"text","text":"█","fontSize":40,"fontColor":"#ff0000","positionX":5,"positionY":40}`, filled(60, 60, white))
	require.False(t, ink(colored).Empty())
	require.Contains(t, refused(t, `{"operation":"text","text":"a","fontSize":5000}`, input(t, half(4, 4), "png")), "size 5000")
	require.Equal(t, []string{"a  b", "c", "", "longer"}, wrap("a  b c\r\n\nlonger", 4))
}

func TestBlurAndTransparent(t *testing.T) {
	out := run(t, `{"operation":"blur","blur":5,"sigma":2}`, half(100, 50))
	at := out.RGBAAt(50, 25)
	require.InDelta(t, 127, int(at.R), 30)
	require.InDelta(t, 127, int(at.B), 30)
	require.Equal(t, []color.RGBA{red, blue}, []color.RGBA{out.RGBAAt(5, 5), out.RGBAAt(95, 45)}, "far from the edge nothing changes")
	out = run(t, `{"operation":"transparent","color":"#ff0000"}`, half(10, 10))
	require.Equal(t, []color.RGBA{nothing, blue}, []color.RGBA{out.RGBAAt(0, 0), out.RGBAAt(9, 9)})
}

func TestComposite(t *testing.T) {
	items := input(t, filled(20, 20, red), "png")
	items[0].Binary["top"] = encoded(t, filled(10, 10, color.NRGBA{0, 0, 255, 255}), "png")
	for operator, want := range map[string]color.RGBA{
		"Over": blue, "Copy": blue, "In": blue, "Atop": blue, "Out": nothing, "Xor": nothing,
		"Plus": {255, 0, 255, 255}, "Difference": {255, 0, 255, 255}, "Multiply": black, "Minus": red,
	} {
		item := nodestest.Run(t, Types()[0], `{"operation":"composite","dataPropertyNameComposite":"top","operator":"`+operator+`","positionX":15,"positionY":-5}`, items)[0][0]
		out, _ := decoded(t, item.Binary["data"])
		require.Equal(t, []color.RGBA{want, red, red}, []color.RGBA{out.RGBAAt(17, 2), out.RGBAAt(14, 2), out.RGBAAt(17, 6)}, operator)
	}
	require.Contains(t, refused(t, `{"operation":"composite","dataPropertyNameComposite":"top","operator":"Bumpmap"}`, items), "choose one of Add, Atop")
	require.Contains(t, refused(t, `{"operation":"composite","dataPropertyNameComposite":"no"}`, items), "binary file 'no'")
}

func TestFormats(t *testing.T) {
	for from := range formats {
		for to := range formats {
			item := nodestest.Run(t, Types()[0], `{"operation":"border","borderColor":"#ff0000","options":{"format":"`+to+`"}}`, input(t, half(40, 20), from))[0][0]
			file := item.Binary["data"]
			require.Equal(t, []string{"image/" + to, to, "in." + to}, []string{file.MimeType, file.FileExtension, file.FileName})
			out, format := decoded(t, file)
			require.Equal(t, to, format)
			require.Equal(t, "60x40", size(out))
			require.InDelta(t, 255, int(out.RGBAAt(15, 20).R), 6, "%s to %s", from, to)
		}
	}
	item := nodestest.Run(t, Types()[0], `{"operation":"border","options":{"fileName":"x.png"}}`, input(t, half(4, 4), "webp"))[0][0]
	require.Equal(t, []string{"image/webp", "x.png"}, []string{item.Binary["data"].MimeType, item.Binary["data"].FileName})
	low := nodestest.Run(t, Types()[0], `{"operation":"blur","options":{"format":"jpg","quality":1}}`, input(t, half(400, 400), "png"))[0][0].Binary["data"]
	high := nodestest.Run(t, Types()[0], `{"operation":"blur","options":{"format":"jpg","quality":100}}`, input(t, half(400, 400), "png"))[0][0].Binary["data"]
	require.Less(t, len(low.Data), len(high.Data))
	// A format without transparency gets a white ground.
	clear := nodestest.Run(t, Types()[0], `{"operation":"transparent","color":"#ff0000","options":{"format":"jpeg"}}`, input(t, filled(8, 8, red), "png"))[0][0]
	out, _ := decoded(t, clear.Binary["data"])
	require.Equal(t, white, out.RGBAAt(4, 4))
	require.Contains(t, refused(t, `{"operation":"blur","options":{"format":"avif"}}`, input(t, half(4, 4), "png")), "choose one of bmp")
}

func TestInformation(t *testing.T) {
	item := nodestest.Run(t, Types()[0], `{"operation":"information"}`, input(t, half(40, 20), "jpeg"))[0][0]
	require.Equal(t, `{"width":40,"height":20}`, gjson.GetBytes(item.JSON, "size").Raw)
	require.Equal(t, "JPEG", gjson.GetBytes(item.JSON, "format").Str)
	require.Contains(t, item.Binary, "data")
}

func TestSteps(t *testing.T) {
	out := run(t, `{"operation":"multiStep","operations":{"operations":[
		{"operation":"resize","width":20,"height":20,"resizeOption":"ignoreAspectRatio"},
		{"operation":"border","borderWidth":"={{ $json.k }}","borderHeight":1,"borderColor":"#ffffff"},
		{"operation":"draw","color":"#0000ff","startPositionX":0,"startPositionY":0,"endPositionX":0,"endPositionY":0}]}}`, filled(100, 50, red))
	require.Equal(t, "22x22", size(out))
	require.Equal(t, []color.RGBA{blue, white, red}, []color.RGBA{out.RGBAAt(0, 0), out.RGBAAt(5, 0), out.RGBAAt(5, 5)})
	// What is created needs no image before.
	made := nodestest.Run(t, Types()[0], `{"operation":"multiStep","dataPropertyName":"new","operations":{"operations":[{"operation":"create","width":9,"height":8},{"operation":"border","borderWidth":1,"borderHeight":1}]},"options":{"fileName":"n.png"}}`, nodestest.Items(`{}`))[0][0]
	img, format := decoded(t, made.Binary["new"])
	require.Equal(t, []string{"png", "11x10"}, []string{format, size(img)})
	require.Equal(t, white, img.RGBAAt(5, 5))
	require.Contains(t, refused(t, `{"operation":"multiStep"}`, input(t, half(4, 4), "png")), "at least one step")
	require.Contains(t, refused(t, `{"operation":"melt"}`, input(t, half(4, 4), "png")), `"melt" is not known`)
}

// bomb is a PNG whose header announces a size that its few bytes do not have.
func bomb(w, h uint32) string {
	var b bytes.Buffer
	if err := png.Encode(&b, filled(1, 1, red)); err != nil {
		panic(err)
	}
	data := b.Bytes()
	binary.BigEndian.PutUint32(data[16:], w)
	binary.BigEndian.PutUint32(data[20:], h)
	binary.BigEndian.PutUint32(data[29:], crc32.ChecksumIEEE(data[12:29]))
	return base64.StdEncoding.EncodeToString(data)
}

func TestBadImages(t *testing.T) {
	with := func(data string) workflow.Items {
		items := nodestest.Items(`{}`)
		items[0].Binary = map[string]workflow.Binary{"data": {Data: data}}
		return items
	}
	const blur = `{"operation":"blur"}`
	require.Contains(t, refused(t, blur, with(bomb(50_000, 50_000))), "too large")
	require.Contains(t, refused(t, blur, with(bomb(1<<31-1, 1<<31-1))), "image")
	require.Contains(t, refused(t, blur, with(bomb(1000, 1000))), "damaged")
	require.Contains(t, refused(t, blur, with("aGVsbG8=")), "cannot be read as an image")
	require.Contains(t, refused(t, blur, nodestest.Items(`{}`)), "binary file 'data', but none was found [item 0]")
	require.Contains(t, refused(t, `{"operation":"create","width":60000,"height":60000}`, nodestest.Items(`{}`)), "too large")
	require.Contains(t, refused(t, `{"operation":"border","borderWidth":900000}`, input(t, half(4, 4), "png")), "too large")
	require.Contains(t, refused(t, `{"operation":"create","width":1e300}`, nodestest.Items(`{}`)), "not a number")
	for format := range formats {
		whole, err := base64.StdEncoding.DecodeString(encoded(t, half(40, 30), format).Data)
		require.NoError(t, err)
		for n := 0; n < len(whole); n += 1 + len(whole)/60 {
			for _, damaged := range [][]byte{whole[:n], append(append(append([]byte{}, whole[:n]...), whole[n]^0xff), whole[n+1:]...)} {
				call := nodestest.Call(Types()[0], `{"operation":"border"}`, with(base64.StdEncoding.EncodeToString(damaged)))
				_, _ = Types()[0].Execute(t.Context(), call) // an error, or an image, and no crash
			}
		}
	}
	call := nodestest.Call(Types()[0], blur, with("aGVsbG8="))
	call.Node.OnError = workflow.OnErrorContinue
	result, err := Types()[0].Execute(t.Context(), call)
	require.NoError(t, err)
	require.Contains(t, string(result.Outputs[0][0].JSON), `"error":`)
}

// Files go through the store.
func TestStored(t *testing.T) {
	call := nodestest.Call(Types()[0], `{"operation":"border"}`, input(t, half(40, 40), "png"))
	call.Files = &node.Files{Store: &node.MemoryFiles{}, Execution: "e", InlineBytes: 1}
	result, err := Types()[0].Execute(t.Context(), call)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(result.Outputs[0][0].Binary["data"].ID, "memory:"))
}
