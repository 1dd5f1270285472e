package values

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
)

// units of time, the greatest first, as Luxon orders them. Those above hours follow the
// calendar.
var units = []string{"year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond"}

// exact is the length of the units that have one.
var exact = map[string]time.Duration{"hour": time.Hour, "minute": time.Minute, "second": time.Second, "millisecond": time.Millisecond}

// casual is the length that a part of a calendar unit has, as in Luxon.
var casual = map[string]time.Duration{"year": 365 * day, "quarter": 91 * day, "month": 30 * day, "week": 7 * day, "day": day}

const day = 24 * time.Hour

// unitOf finds a unit in the singular or the plural.
func unitOf(name string) (string, bool) {
	name = strings.TrimSuffix(strings.ToLower(name), "s")
	for _, unit := range units {
		if unit == name {
			return unit, true
		}
	}
	return "", false
}

// addUnits adds to a date. Calendar units keep the time of day; a month later is the last
// of the month where the day would not exist. The part of a calendar unit has its casual length.
func addUnits(t time.Time, amount float64, unit string) time.Time {
	if length, ok := exact[unit]; ok {
		// Not one multiplication: a float holds years of nanoseconds only roughly.
		whole, part := math.Modf(amount)
		return addLong(t, whole, length).Add(time.Duration(part * float64(length)))
	}
	whole, part := math.Modf(amount)
	// Twice the span of all dates is enough to be none.
	limit := 2 * maxMilliseconds / float64(casual[unit]/time.Millisecond)
	n := int(math.Max(-limit, math.Min(limit, whole)))
	switch unit {
	case "year":
		t = addMonths(t, 12*n)
	case "quarter":
		t = addMonths(t, 3*n)
	case "month":
		t = addMonths(t, n)
	case "week":
		t = addDays(t, 7*n)
	case "day":
		t = addDays(t, n)
	}
	return t.Add(time.Duration(part * float64(casual[unit])))
}

// addLong adds n times a length; durations alone end at 292 years.
func addLong(t time.Time, n float64, length time.Duration) time.Time {
	milliseconds := n * float64(length/time.Millisecond)
	if math.Abs(milliseconds) > maxMilliseconds {
		milliseconds = math.Copysign(maxMilliseconds, milliseconds)
	}
	return time.UnixMilli(t.UnixMilli() + int64(milliseconds)).Add(time.Duration(t.Nanosecond() % int(time.Millisecond))).In(t.Location())
}

func addDays(t time.Time, n int) time.Time {
	return sameClock(t, t.Year(), t.Month(), t.Day()+n)
}

// sameClock is a date at the time of day of another. What the clock shows twice, or not
// at all, on that date is taken as Luxon takes it: with the offset that t had.
func sameClock(t time.Time, year int, month time.Month, day int) time.Time {
	return wallClock(t, time.Date(year, month, day, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC))
}

// wallClock is the time in t's zone at which clocks show what they show in UTC at shown.
func wallClock(t, shown time.Time) time.Time {
	offset := func(t time.Time) time.Duration {
		_, seconds := t.Zone()
		return time.Duration(seconds) * time.Second
	}
	before := offset(t)
	guess := shown.Add(-before).In(t.Location())
	found := offset(guess)
	if found == before {
		return guess
	}
	guess = shown.Add(-found).In(t.Location())
	if again := offset(guess); again != found {
		return shown.Add(-min(found, again)).In(t.Location())
	}
	return guess
}

func addMonths(t time.Time, n int) time.Time {
	months := t.Year()*12 + int(t.Month()) - 1 + n
	year, month := months/12, months%12
	if month < 0 {
		year, month = year-1, month+12
	}
	last := min(t.Day(), daysIn(year, month+1))
	return sameClock(t, year, time.Month(month+1), last)
}

// startOf is the beginning of the unit that a date is in; weeks begin on Monday.
func startOf(t time.Time, unit string) time.Time {
	date := func(month time.Month, day int) time.Time {
		return time.Date(t.Year(), month, day, 0, 0, 0, 0, t.Location())
	}
	switch unit {
	case "year":
		return date(1, 1)
	case "quarter":
		return date((t.Month()-1)/3*3+1, 1)
	case "month":
		return date(t.Month(), 1)
	case "week":
		return date(t.Month(), t.Day()+1-isoWeekday(t))
	case "day":
		return date(t.Month(), t.Day())
	}
	// Below a day it is subtracted, so that the two hours of a clock set back stay apart.
	into := time.Duration(t.Nanosecond() % int(time.Millisecond))
	if unit != "millisecond" {
		into = time.Duration(t.Nanosecond())
	}
	if unit == "minute" || unit == "hour" {
		into += time.Duration(t.Second()) * time.Second
	}
	if unit == "hour" {
		into += time.Duration(t.Minute()) * time.Minute
	}
	return t.Add(-into)
}

// amount is how much of a unit lies between two dates.
type amount struct {
	unit string
	n    float64
}

// between tells the time from start to end in the units asked for, in Luxon's way: whole
// units, the greatest first, and what is left over as a part of the smallest.
func between(start, end time.Time, asked []string) []amount {
	if end.Before(start) {
		list := between(end, start, asked)
		for i := range list {
			if list[i].n != 0 { // there is no -0 in JSON
				list[i].n = -list[i].n
			}
		}
		return list
	}
	wanted := map[string]bool{}
	for _, unit := range asked {
		wanted[unit] = true
	}
	var list []amount
	cursor, months, days := start, 0, 0
	for i, unit := range units {
		if !wanted[unit] {
			continue
		}
		last := true
		for _, smaller := range units[i+1:] {
			last = last && !wanted[smaller]
		}
		if length, ok := exact[unit]; ok {
			left := end.UnixMilli() - cursor.UnixMilli()
			whole := left / int64(length/time.Millisecond)
			cursor = addLong(cursor, float64(whole), length)
			n := float64(whole)
			if last {
				n = float64(left) / float64(length/time.Millisecond)
			}
			list = append(list, amount{unit, n})
			continue
		}
		// Each step begins at start again: from the 31st a month and then a month are not
		// two months.
		after := func(n int) time.Time {
			m, d := calendar[unit][0], calendar[unit][1]
			return addDays(addMonths(start, months+n*m), days+n*d)
		}
		whole := boundaries(cursor, end, unit)
		above := after(whole)
		for whole > 0 && after(whole).After(end) {
			above = after(whole)
			whole--
		}
		cursor = after(whole)
		months, days = months+whole*calendar[unit][0], days+whole*calendar[unit][1]
		n := float64(whole)
		if !above.After(cursor) {
			above = addUnits(cursor, 1, unit)
		}
		if last {
			n += float64(end.UnixMilli()-cursor.UnixMilli()) / float64(above.UnixMilli()-cursor.UnixMilli())
		}
		list = append(list, amount{unit, n})
	}
	return list
}

// calendar units in months and days.
var calendar = map[string][2]int{"year": {12, 0}, "quarter": {3, 0}, "month": {1, 0}, "week": {0, 7}, "day": {0, 1}}

// boundaries counts by the calendar how many units lie between two dates, which is as many
// as fit or one more.
func boundaries(start, end time.Time, unit string) int {
	end = end.In(start.Location())
	years := end.Year() - start.Year()
	months := years*12 + int(end.Month()-start.Month())
	midnight := func(t time.Time) int64 { return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC).Unix() }
	days := int((midnight(end) - midnight(start)) / int64(day/time.Second))
	switch unit {
	case "year":
		return years
	case "quarter":
		return years*4 + int(end.Month()+2)/3 - int(start.Month()+2)/3
	case "month":
		return months
	case "week":
		return days / 7
	}
	return days
}

// amountsObject writes amounts as {"days": 3, "hours": 4.5}.
func amountsObject(list []amount) string {
	var object jsonobject.Object
	for _, a := range list {
		object.Set(a.unit+"s", number(a.n))
	}
	return object.String()
}

// amountsISO writes amounts as an ISO 8601 duration.
func amountsISO(list []amount) string {
	n := map[string]float64{}
	for _, a := range list {
		n[a.unit] = a.n
	}
	var b strings.Builder
	b.WriteByte('P')
	write := func(value float64, letter string) {
		if value != 0 {
			b.WriteString(number(value) + letter)
		}
	}
	write(n["year"], "Y")
	write(n["month"]+3*n["quarter"], "M")
	write(n["week"], "W")
	write(n["day"], "D")
	seconds := math.Round((n["second"]+n["millisecond"]/1000)*1000) / 1000
	if n["hour"] != 0 || n["minute"] != 0 || seconds != 0 {
		b.WriteByte('T')
		write(n["hour"], "H")
		write(n["minute"], "M")
		write(seconds, "S")
	}
	if b.Len() == 1 {
		return "PT0S"
	}
	return b.String()
}

// number writes a float as JavaScript does.
func number(f float64) string {
	text, err := json.Marshal(f)
	if err != nil {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return string(text)
}
