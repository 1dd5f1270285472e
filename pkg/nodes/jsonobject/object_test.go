package jsonobject

import (
	"reflect"
	"testing"
)

func TestOrderAndNumbersSurvive(t *testing.T) {
	const text = `{"z":1.50,"a":{"y":12345678901234567890},"m":[1e400]}`
	o := Parse(text)
	if got := o.String(); got != text {
		t.Errorf("Parse and String: got %s, want %s", got, text)
	}
	o.Set("a", "2")
	o.Set("new", `"<&>"`)
	o.Delete("m")
	if got, want := o.String(), `{"z":1.50,"a":2,"new":"<&>"}`; got != want {
		t.Errorf("after changes: got %s, want %s", got, want)
	}
}

func TestSplit(t *testing.T) {
	for path, want := range map[string][]string{
		"a":          {"a"},
		"a.b":        {"a", "b"},
		"a[0].b":     {"a", "0", "b"},
		`a["x y"].b`: {"a", "x y", "b"},
		"x y":        {"x y"},
		"":           {""},
		".":          {"."},
	} {
		if got := Split(path); !reflect.DeepEqual(got, want) {
			t.Errorf("Split(%q) = %q, want %q", path, got, want)
		}
	}
}

func TestPaths(t *testing.T) {
	for _, test := range []struct{ name, in, path, value, want string }{
		{"new nested", `{"a":1}`, "b.c", "2", `{"a":1,"b":{"c":2}}`},
		{"into object", `{"o":{"p":1},"z":0}`, "o.q", "2", `{"o":{"p":1,"q":2},"z":0}`},
		{"into list", `{"l":[{"x":1}]}`, "l[1].x", "2", `{"l":[{"x":1},{"x":2}]}`},
		{"gap in a new list", `{}`, "l[1]", "2", `{"l":[null,2]}`},
		{"scalar in the way", `{"a":1}`, "a.b", "2", `{"a":{"b":2}}`},
		{"literal key", `{"a.b":1}`, "a.b", "2", `{"a.b":2}`},
		{"huge index", `{}`, "l[99999999]", "2", `{"l":{"99999999":2}}`},
		{"key to be quoted", `{}`, "a\"\n", "2", `{"a\"\n":2}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := Parse(test.in)
			o.SetPath(test.path, test.value)
			if got := o.String(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if got := o.GetPath(test.path); got != test.value {
				t.Errorf("GetPath gives %q, want %q", got, test.value)
			}
			o.DeletePath("o.q")
		})
	}
	o := Parse(`{"a":{"b":1,"c":2},"d":3}`)
	o.DeletePath("a.b")
	o.DeletePath("d")
	o.DeletePath("x.y")
	if got, want := o.String(), `{"a":{"c":2}}`; got != want {
		t.Errorf("DeletePath: got %s, want %s", got, want)
	}
}

func TestOverlay(t *testing.T) {
	isNull := func(v string) bool { return v == "null" }
	for _, test := range []struct {
		name, below, above, want string
		deep                     bool
		skip                     func(string) bool
	}{
		{"shallow", `{"a":{"x":1},"b":1}`, `{"a":{"y":2},"c":3}`, `{"a":{"y":2},"b":1,"c":3}`, false, nil},
		{"deep", `{"a":{"x":1},"l":[1,2]}`, `{"a":{"y":2},"l":[9]}`, `{"a":{"x":1,"y":2},"l":[9,2]}`, true, nil},
		{"skip", `{"a":1}`, `{"a":null,"b":null}`, `{"a":1,"b":null}`, true, isNull},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := Parse(test.below)
			o.Overlay(Parse(test.above), test.deep, test.skip)
			if got := o.String(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
