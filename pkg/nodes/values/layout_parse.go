package values

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// numbers are the tokens that are read as numbers, and how many digits they may have.
var numbers = map[string]string{
	"S": `\d{1,3}`, "SSS": `\d{3}`, "u": `\d{1,9}`, "uu": `\d{2}`, "uuu": `\d`, "@S": `\d`, "@SS": `\d{2}`,
	"s": `\d{1,2}`, "ss": `\d{2}`, "m": `\d{1,2}`, "mm": `\d{2}`, "h": `\d{1,2}`, "hh": `\d{2}`, "H": `\d{1,2}`, "HH": `\d{2}`,
	"d": `\d{1,2}`, "dd": `\d{2}`, "L": `\d{1,2}`, "LL": `\d{2}`, "M": `\d{1,2}`, "MM": `\d{2}`,
	"y": `\d{1,6}`, "yy": `\d{2,4}`, "yyyy": `\d{4}`, "yyyyyy": `[+-]?\d{6}`, "o": `\d{1,3}`, "ooo": `\d{3}`, "q": `\d`, "qq": `\d{2}`,
	"kk": `\d{2}`, "kkkk": `\d{4}`, "W": `\d{1,2}`, "WW": `\d{2}`, "c": `\d`, "E": `\d`, "X": `-?\d+(?:\.\d+)?`, "x": `-?\d+`,
	"@Do": `\d{1,2}(?:st|nd|rd|th)`, "@Mo": `\d{1,2}(?:st|nd|rd|th)`, "@DDDo": `\d{1,3}(?:st|nd|rd|th)`, "@Qo": `\d(?:st|nd|rd|th)`, "@k": `\d{1,2}`, "@kk": `\d{2}`,
}

// words are the tokens that are read as words.
var words = map[string]string{
	"MMM": `[A-Za-z]{3,}\.?`, "LLL": `[A-Za-z]{3,}\.?`, "MMMM": `[A-Za-z]+`, "LLLL": `[A-Za-z]+`,
	"EEE": `[A-Za-z]{3,}\.?`, "ccc": `[A-Za-z]{3,}\.?`, "EEEE": `[A-Za-z]+`, "cccc": `[A-Za-z]+`, "@dd": `[A-Za-z]{2}`, "@d": `\d`, "@do": `\d(?:st|nd|rd|th)`,
	"a": `[AaPp]\.?[Mm]\.?`, "@a": `[AaPp]\.?[Mm]\.?`, "G": `AD|BC`, "GG": `Anno Domini|Before Christ`, "GGGGG": `A|B`,
	"Z": `Z|[+-]\d{1,2}(?::\d{2})?`, "ZZ": `Z|[+-]\d{2}:?\d{2}`, "ZZZ": `Z|[+-]\d{2}:?\d{2}`, "z": `[A-Za-z_+\-0-9/]+`,
}

// pattern is the regular expression of the texts that the layout reads.
func (l layout) pattern() (*regexp.Regexp, error) {
	var b strings.Builder
	b.WriteString(`(?i)^\s*`)
	for _, p := range l {
		switch {
		case p.token == "":
			b.WriteString(regexp.QuoteMeta(p.literal))
		case numbers[p.token] != "":
			b.WriteString("(" + numbers[p.token] + ")")
		case words[p.token] != "":
			b.WriteString("(" + words[p.token] + ")")
		default:
			return nil, fmt.Errorf("the token %q can be written, but not read", strings.TrimPrefix(p.token, "@"))
		}
	}
	b.WriteString(`\s*$`)
	return regexp.Compile(b.String())
}

// reading collects what the tokens say.
type reading struct {
	year, month, day, hour, minute, second, nanosecond int

	yearDay, isoYear, isoWeek, weekday, quarter int

	afternoon *bool
	at        *time.Time
	zone      *time.Location
}

// parse reads a text. What it leaves open is zone's, and the beginning of the year of now.
func (l layout) parse(text string, zone *time.Location, now time.Time) (time.Time, error) {
	pattern, err := l.pattern()
	if err != nil {
		return time.Time{}, err
	}
	found := pattern.FindStringSubmatch(text)
	if found == nil {
		return time.Time{}, fmt.Errorf("%q does not have this format", text)
	}
	r := reading{year: now.In(zone).Year(), month: 1, day: 1, zone: zone}
	n := 0
	for _, p := range l {
		if p.token == "" {
			continue
		}
		n++
		if err := r.set(p.token, found[n]); err != nil {
			return time.Time{}, err
		}
	}
	return r.time()
}

func (r *reading) set(token, text string) error {
	if words[token] != "" {
		return r.setWord(token, text)
	}
	digits := strings.TrimRight(strings.ToLower(text), "sndrth")
	n, _ := strconv.ParseFloat(digits, 64)
	i := int(n)
	switch token {
	case "X":
		at := time.UnixMilli(int64(n * 1000))
		r.at = &at
	case "x":
		at := time.UnixMilli(int64(n))
		r.at = &at
	case "S", "SSS":
		r.nanosecond = i * int(time.Millisecond)
	case "u", "uu", "uuu", "@S", "@SS":
		fraction, _ := strconv.ParseFloat("0."+digits, 64)
		r.nanosecond = int(fraction * float64(time.Second))
	case "s", "ss":
		r.second = i
	case "m", "mm":
		r.minute = i
	case "h", "hh", "H", "HH", "@k", "@kk":
		r.hour = i
	case "d", "dd", "@Do":
		r.day = i
	case "L", "LL", "M", "MM", "@Mo":
		r.month = i
	case "y", "yyyy", "yyyyyy":
		r.year = i
	case "yy":
		r.year = fullYear(i, len(digits))
	case "o", "ooo", "@DDDo":
		r.yearDay = i
	case "q", "qq", "@Qo":
		r.quarter = i
	case "kk", "kkkk":
		r.isoYear = fullYear(i, len(digits))
	case "W", "WW":
		r.isoWeek = i
	case "c", "E":
		r.weekday = i
	}
	return nil
}

// fullYear gives a year of two digits its century: up to 60 it is ours.
func fullYear(year, digits int) int {
	switch {
	case digits > 2:
		return year
	case year > 60:
		return 1900 + year
	}
	return 2000 + year
}

func (r *reading) setWord(token, text string) error {
	switch token {
	case "MMM", "LLL", "MMMM", "LLLL":
		for m := time.January; m <= time.December; m++ {
			if len(text) >= 3 && strings.HasPrefix(strings.ToLower(m.String()), strings.ToLower(strings.TrimSuffix(text, "."))) || strings.EqualFold(text, "sept") && m == time.September {
				r.month = int(m)
				return nil
			}
		}
		return fmt.Errorf("%q is no month", text)
	case "a", "@a":
		afternoon := text[0] == 'p' || text[0] == 'P'
		r.afternoon = &afternoon
	case "Z", "ZZ", "ZZZ":
		zone, err := offsetZone(text)
		r.zone = zone
		return err
	case "z":
		zone, err := time.LoadLocation(text)
		if err != nil {
			return fmt.Errorf("the time zone %q is unknown", text)
		}
		r.zone = zone
	}
	return nil // the name of a day says nothing new
}

// offsetZone reads Z, +1, +0130 or +01:30.
func offsetZone(text string) (*time.Location, error) {
	if strings.EqualFold(text, "Z") {
		return time.UTC, nil
	}
	digits := strings.ReplaceAll(text[1:], ":", "")
	hours, minutes := digits, "0"
	if len(digits) > 2 {
		hours, minutes = digits[:len(digits)-2], digits[len(digits)-2:]
	}
	h, err1 := strconv.Atoi(hours)
	m, err2 := strconv.Atoi(minutes)
	if err1 != nil || err2 != nil || h > 14 || m > 59 {
		return time.UTC, fmt.Errorf("%q is no offset of a time zone", text)
	}
	seconds := h*3600 + m*60
	if text[0] == '-' {
		seconds = -seconds
	}
	if seconds == 0 {
		return time.UTC, nil
	}
	return time.FixedZone("UTC"+text[:1]+strconv.Itoa(h)+":"+pad(m, 2), seconds), nil
}

func (r *reading) time() (time.Time, error) {
	if r.at != nil {
		return r.at.In(r.zone), nil
	}
	if r.afternoon != nil {
		if r.hour < 1 || r.hour > 12 {
			return time.Time{}, fmt.Errorf("there is no hour %d before or after noon", r.hour)
		}
		r.hour %= 12
		if *r.afternoon {
			r.hour += 12
		}
	}
	if r.hour == 24 && r.minute == 0 && r.second == 0 && r.nanosecond == 0 {
		r.hour, r.day = 0, r.day+1
	} else if r.hour > 23 || r.minute > 59 || r.second > 59 {
		return time.Time{}, fmt.Errorf("there is no time %02d:%02d:%02d", r.hour, r.minute, r.second)
	} else if r.month < 1 || r.month > 12 || r.day < 1 || r.day > daysIn(r.year, r.month) {
		return time.Time{}, fmt.Errorf("there is no day %04d-%02d-%02d", r.year, r.month, r.day)
	}
	switch {
	case r.yearDay > 0:
		r.month, r.day = 1, r.yearDay
	case r.isoWeek > 0:
		if r.isoYear == 0 {
			r.isoYear = r.year
		}
		// January 4th is always in the first week.
		fourth := time.Date(r.isoYear, 1, 4, 0, 0, 0, 0, time.UTC)
		first := fourth.AddDate(0, 0, 1-isoWeekday(fourth)+(r.isoWeek-1)*7+max(r.weekday, 1)-1)
		r.year, r.month, r.day = first.Year(), int(first.Month()), first.Day()
	case r.quarter > 0 && r.month == 1:
		r.month = r.quarter*3 - 2
	}
	return time.Date(r.year, time.Month(r.month), r.day, r.hour, r.minute, r.second, r.nanosecond, r.zone), nil
}

func daysIn(year, month int) int {
	return time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}
