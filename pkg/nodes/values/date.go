package values

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// isoFormat is how dates come out: 2024-03-05T15:30:15.123+01:00, with Z for UTC.
const isoFormat = "2006-01-02T15:04:05.000Z07:00"

// zoneOf finds a time zone by its name; none, and n8n's word for its default, is UTC.
func zoneOf(name string) (*time.Location, error) {
	if name == "" || name == "DEFAULT" {
		return time.UTC, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("the time zone %q is unknown; use a name such as Europe/Berlin, or GMT", name)
	}
	return zone, nil
}

// readDate reads a date as JavaScript does: milliseconds, ISO 8601, or one of the usual
// notations. What names no zone is zone's.
func readDate(value json.RawMessage, zone *time.Location) (time.Time, error) {
	parsed := gjson.ParseBytes(value)
	switch parsed.Type {
	case gjson.Number:
		return fromMilliseconds(parsed.Num)
	case gjson.String:
		return readDateText(strings.TrimSpace(parsed.Str), zone)
	}
	return time.Time{}, fmt.Errorf("%s is no date", parsed.Raw)
}

// maxMilliseconds is the end of JavaScript's dates, in either direction.
const maxMilliseconds = 8.64e15

func fromMilliseconds(n float64) (time.Time, error) {
	if math.IsNaN(n) || math.Abs(n) > maxMilliseconds {
		return time.Time{}, fmt.Errorf("%v is no date", n)
	}
	return time.UnixMilli(int64(n)).UTC(), nil
}

var (
	iso = regexp.MustCompile(`^(\d{4})(?:-?(\d{2})(?:-?(\d{2}))?)?(?:[Tt ](\d{2})(?::?(\d{2})(?::?(\d{2})(?:[.,](\d+))?)?)?)?\s*([Zz]|[+-]\d{2}(?::?\d{2})?)?(?:\[.*\])?$`)
	// digits that are no basic ISO date are milliseconds.
	milliseconds = regexp.MustCompile(`^-?\d{5,7}$|^-?\d{9,17}$|^-?\d+\.\d+$`)
)

// notations, each with a year, that people and mail use, in Luxon's tokens.
var notations = func() []layout {
	var all []layout
	for _, format := range []string{
		"EEE, d MMM yyyy HH:mm:ss ZZZ", "EEE, d MMM yyyy HH:mm:ss z", "d MMM yyyy HH:mm:ss ZZZ", "EEE MMM d yyyy HH:mm:ss 'GMT'ZZZ", "EEE MMM d HH:mm:ss yyyy",
		"kkkk-'W'WW-E", "kkkk-'W'WW", "yyyy-ooo",
	} {
		all = append(all, luxonLayout(format))
	}
	for _, date := range []string{"yyyy/M/d", "M/d/yyyy", "yyyy-M-d", "M-d-yyyy", "MMMM d, yyyy", "MMMM d yyyy", "d MMMM yyyy", "d MMMM, yyyy", "EEEE, MMMM d, yyyy", "EEE MMM d yyyy", "EEE, d MMM yyyy", "d-MMM-yyyy"} {
		for _, clock := range []string{"", " H:mm", " H:mm:ss", " H:mm:ss.u", " h:mm a", " h:mm:ss a", ", h:mm a", ", h:mm:ss a"} {
			all = append(all, luxonLayout(date+clock))
		}
	}
	return all
}()

// javaScriptComment is the zone's name that JavaScript's dates end with: (Central …).
var javaScriptComment = regexp.MustCompile(`\s*\([^()]*\)$`)

func readDateText(text string, zone *time.Location) (time.Time, error) {
	if found := iso.FindStringSubmatch(text); found != nil && !milliseconds.MatchString(text) {
		return isoTime(found, zone)
	}
	if milliseconds.MatchString(text) {
		n, _ := strconv.ParseFloat(text, 64)
		return fromMilliseconds(n)
	}
	text = strings.ReplaceAll(javaScriptComment.ReplaceAllString(text, ""), "\u202f", " ")
	for _, notation := range notations {
		if t, err := notation.parse(text, zone, time.Time{}); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no date", text)
}

func isoTime(found []string, zone *time.Location) (time.Time, error) {
	number := func(i, fallback int) int {
		if n, err := strconv.Atoi(found[i]); err == nil {
			return n
		}
		return fallback
	}
	r := reading{year: number(1, 0), month: number(2, 1), day: number(3, 1), hour: number(4, 0), minute: number(5, 0), second: number(6, 0), zone: zone}
	if found[7] != "" {
		fraction, _ := strconv.ParseFloat("0."+found[7], 64)
		r.nanosecond = int(math.Round(fraction*1e9/1e3)) * 1e3
	}
	if found[8] != "" {
		zone, err := offsetZone(found[8])
		if err != nil {
			return time.Time{}, err
		}
		r.zone = zone
	}
	return r.time()
}

// isNumber reports whether a text is a number.
func isNumber(text string) bool {
	_, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return err == nil
}
