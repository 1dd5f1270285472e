package trigger

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFields(t *testing.T) {
	for raw, want := range map[string]string{
		"":                                 `{}`,
		"b=1&a=2":                          `{"b":"1","a":"2"}`,
		"a=1&a=2&a=3":                      `{"a":["1","2","3"]}`,
		"a[]=1":                            `{"a":["1"]}`,
		"a[0]=x&a[1]=y":                    `{"a":["x","y"]}`,
		"a[b][c]=1&a[d]=2":                 `{"a":{"b":{"c":"1"},"d":"2"}}`,
		"a=%26%3D&b=c+d&e":                 `{"a":"&=","b":"c d","e":""}`,
		"a=%zz":                            `{"a":"%zz"}`,
		"a[b=1&[c]=2&a]=3":                 `{"a[b":"1","[c]":"2","a]":"3"}`,
		"a=1&a[b]=2":                       `{"a":{"b":"2"}}`,
		"__proto__[x]=1&constructor=2":     `{"__proto__":{"x":"1"},"constructor":"2"}`,
		"a[b][c][d][e][f][g]=1":            `{"a[b][c][d][e][f][g]":"1"}`,
		"a=<b>&a=%22":                      `{"a":["<b>","\""]}`,
		"a" + strings.Repeat("[", 40) + "": `{"a` + strings.Repeat("[", 40) + `":""}`,
	} {
		require.Equal(t, want, string(toJSON(fields(raw))), raw)
	}
}
