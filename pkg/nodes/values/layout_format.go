package values

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// format writes a time, in its own zone and in English.
func (l layout) format(t time.Time) string {
	var b strings.Builder
	for _, p := range l {
		if p.token == "" {
			b.WriteString(p.literal)
		} else {
			b.WriteString(formatToken(p.token, t))
		}
	}
	return b.String()
}

func formatToken(token string, t time.Time) string {
	if text, ok := formatTime(token, t); ok {
		return text
	}
	isoYear, isoWeek := t.ISOWeek()
	year, week := americanWeek(t)
	month, quarter := int(t.Month()), (int(t.Month())+2)/3
	switch token {
	case "d":
		return strconv.Itoa(t.Day())
	case "dd":
		return pad(t.Day(), 2)
	case "@Do":
		return ordinal(t.Day())
	case "c", "E":
		return strconv.Itoa(isoWeekday(t))
	case "ccc", "EEE":
		return t.Weekday().String()[:3]
	case "cccc", "EEEE":
		return t.Weekday().String()
	case "ccccc", "EEEEE":
		return t.Weekday().String()[:1]
	case "@d":
		return strconv.Itoa(int(t.Weekday()))
	case "@do":
		return ordinal(int(t.Weekday()))
	case "@dd":
		return t.Weekday().String()[:2]
	case "L", "M":
		return strconv.Itoa(month)
	case "LL", "MM":
		return pad(month, 2)
	case "LLL", "MMM":
		return t.Month().String()[:3]
	case "LLLL", "MMMM":
		return t.Month().String()
	case "LLLLL", "MMMMM":
		return t.Month().String()[:1]
	case "@Mo":
		return ordinal(month)
	case "y":
		return strconv.Itoa(t.Year())
	case "yy":
		return pad(t.Year()%100, 2)
	case "yyyy":
		return pad(t.Year(), 4)
	case "yyyyyy":
		return pad(t.Year(), 6)
	case "G":
		return era(t, "AD", "BC")
	case "GG":
		return era(t, "Anno Domini", "Before Christ")
	case "GGGGG":
		return era(t, "A", "B")
	case "kk":
		return pad(isoYear%100, 2)
	case "kkkk":
		return pad(isoYear, 4)
	case "W":
		return strconv.Itoa(isoWeek)
	case "WW":
		return pad(isoWeek, 2)
	case "n":
		return strconv.Itoa(week)
	case "nn":
		return pad(week, 2)
	case "ii":
		return pad(year%100, 2)
	case "iiii":
		return pad(year, 4)
	case "o":
		return strconv.Itoa(t.YearDay())
	case "ooo":
		return pad(t.YearDay(), 3)
	case "@DDDo":
		return ordinal(t.YearDay())
	case "q":
		return strconv.Itoa(quarter)
	case "qq":
		return pad(quarter, 2)
	case "@Qo":
		return ordinal(quarter)
	}
	return token
}

// formatTime writes the tokens of the time of day, of the zone and of timestamps.
func formatTime(token string, t time.Time) (string, bool) {
	milliseconds := t.Nanosecond() / int(time.Millisecond)
	twelve := (t.Hour()+11)%12 + 1
	twentyFour := (t.Hour()+23)%24 + 1
	switch token {
	case "S":
		return strconv.Itoa(milliseconds), true
	case "SSS", "u":
		return pad(milliseconds, 3), true
	case "uu", "@SS":
		return pad(milliseconds/10, 2), true
	case "uuu", "@S":
		return strconv.Itoa(milliseconds / 100), true
	case "s":
		return strconv.Itoa(t.Second()), true
	case "ss":
		return pad(t.Second(), 2), true
	case "m":
		return strconv.Itoa(t.Minute()), true
	case "mm":
		return pad(t.Minute(), 2), true
	case "h":
		return strconv.Itoa(twelve), true
	case "hh":
		return pad(twelve, 2), true
	case "H":
		return strconv.Itoa(t.Hour()), true
	case "HH":
		return pad(t.Hour(), 2), true
	case "@k":
		return strconv.Itoa(twentyFour), true
	case "@kk":
		return pad(twentyFour, 2), true
	case "a":
		return t.Format("PM"), true
	case "@a":
		return t.Format("pm"), true
	case "Z":
		return shortOffset(t), true
	case "ZZ":
		return t.Format("-07:00"), true
	case "ZZZ":
		return t.Format("-0700"), true
	case "ZZZZ":
		return zoneAbbreviation(t), true
	case "ZZZZZ":
		return zoneName(t), true
	case "z":
		return t.Location().String(), true
	case "X":
		return strconv.FormatInt(t.Unix(), 10), true
	case "x":
		return strconv.FormatInt(t.UnixMilli(), 10), true
	}
	return "", false
}

func pad(n, width int) string {
	if n < 0 {
		return "-" + pad(-n, width)
	}
	return fmt.Sprintf("%0*d", width, n)
}

func ordinal(n int) string {
	suffix := "th"
	if tens := n % 100; tens < 11 || tens > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
}

func era(t time.Time, after, before string) string {
	if t.Year() > 0 {
		return after
	}
	return before
}

// isoWeekday is 1 on Monday and 7 on Sunday.
func isoWeekday(t time.Time) int { return (int(t.Weekday())+6)%7 + 1 }

// americanWeek is the week of a day where weeks begin on Sunday and the first one is that
// of January 1st.
func americanWeek(t time.Time) (year, week int) {
	saturday := t.AddDate(0, 0, 6-int(t.Weekday()))
	return saturday.Year(), (saturday.YearDay()-1)/7 + 1
}

// shortOffset is +1 or +5:30.
func shortOffset(t time.Time) string {
	_, offset := t.Zone()
	sign := "+"
	if offset < 0 {
		sign, offset = "-", -offset
	}
	text := sign + strconv.Itoa(offset/3600)
	if minutes := offset / 60 % 60; minutes != 0 {
		text += ":" + pad(minutes, 2)
	}
	return text
}

// zoneNames are the names of zones in American English, by the abbreviation of the zone
// data. Only the zones of the USA have abbreviations there; others go by their offset.
var zoneNames = map[string]struct {
	long     string
	american bool
}{
	"UTC": {"Coordinated Universal Time", true},
	"EST": {"Eastern Standard Time", true}, "EDT": {"Eastern Daylight Time", true},
	"CST": {"Central Standard Time", true}, "CDT": {"Central Daylight Time", true},
	"MST": {"Mountain Standard Time", true}, "MDT": {"Mountain Daylight Time", true},
	"PST": {"Pacific Standard Time", true}, "PDT": {"Pacific Daylight Time", true},
	"AKST": {"Alaska Standard Time", true}, "AKDT": {"Alaska Daylight Time", true}, "HST": {"Hawaii-Aleutian Standard Time", true},
	"CET": {"Central European Standard Time", false}, "CEST": {"Central European Summer Time", false},
	"EET": {"Eastern European Standard Time", false}, "EEST": {"Eastern European Summer Time", false},
	"WET": {"Western European Standard Time", false}, "WEST": {"Western European Summer Time", false},
	"GMT": {"Greenwich Mean Time", false}, "BST": {"British Summer Time", false}, "MSK": {"Moscow Standard Time", false},
	"JST": {"Japan Standard Time", false}, "KST": {"Korean Standard Time", false}, "SGT": {"Singapore Standard Time", false},
	"AEST": {"Australian Eastern Standard Time", false}, "AEDT": {"Australian Eastern Daylight Time", false},
}

func zoneAbbreviation(t time.Time) string {
	name, offset := t.Zone()
	if zoneNames[name].american && !strings.HasPrefix(t.Location().String(), "Asia/") {
		return name
	}
	if offset == 0 {
		return "GMT"
	}
	return "GMT" + shortOffset(t)
}

func zoneName(t time.Time) string {
	name, offset := t.Zone()
	if where := t.Location().String(); where == "Asia/Kolkata" || where == "Asia/Calcutta" {
		return "India Standard Time" // others have the abbreviation IST too
	}
	if known := zoneNames[name]; known.long != "" && !(known.american && strings.HasPrefix(t.Location().String(), "Asia/")) {
		return known.long
	}
	if offset == 0 {
		return "GMT"
	}
	return "GMT" + t.Format("-07:00")
}
