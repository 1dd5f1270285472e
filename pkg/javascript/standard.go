package javascript

import (
	_ "embed" // the standard library
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// luxonSource is Luxon 3.7.2, unchanged.
//
//go:embed assets/luxon.min.js
var luxonSource string

// standardSource is what scripts may use beside the language itself.
//
//go:embed standard.js
var standardSource string

// intlSource is a small Intl: English and a few other locales.
//
//go:embed intl.js
var intlSource string

// standardCalls are the host calls of the standard library. ok false is
// undefined in the script.
var standardCalls = map[string]func(arg string) (reply string, ok bool){
	"zone": zoneOffset,
	"zoneExists": func(arg string) (string, bool) {
		_, err := location(arg)
		return arg, err == nil
	},
	"hash":   digest,
	"digest": digestBytes,
	"hmac":   hmacBytes,
	"url":    parseURL,
	"locale": localeData,
}

var locations sync.Map // name to *time.Location

// location finds a zone; names that JavaScript would refuse are refused.
func location(name string) (*time.Location, error) {
	if l, ok := locations.Load(name); ok {
		return l.(*time.Location), nil
	}
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("no time zone %q", name)
	}
	l, err := time.LoadLocation(name)
	if err != nil {
		return nil, err
	}
	locations.Store(name, l)
	return l, nil
}

// zoneOffset takes "<zone> <milliseconds>" and answers "<seconds east>
// <abbreviation> <1 when summer time>".
func zoneOffset(arg string) (string, bool) {
	name, ms, _ := strings.Cut(arg, " ")
	l, err := location(name)
	if err != nil {
		return "", false
	}
	at, err := strconv.ParseFloat(ms, 64)
	if err != nil {
		return "", false
	}
	t := time.UnixMilli(int64(at)).In(l)
	abbreviation, offset := t.Zone()
	summer := "0"
	if t.IsDST() {
		summer = "1"
	}
	return strconv.Itoa(offset) + " " + abbreviation + " " + summer, true
}
