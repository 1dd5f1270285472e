package files

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// icsLine is a line of an iCalendar file: NAME;PARAMETER=value:text.
type icsLine struct {
	name, text string
	parameters map[string]string
}

// parseICS unfolds and splits the lines of an iCalendar file.
func parseICS(text string) (lines []icsLine) {
	text = strings.NewReplacer("\r\n ", "", "\r\n\t", "", "\n ", "", "\n\t", "").Replace(text)
	for raw := range strings.SplitSeq(text, "\n") {
		raw = strings.TrimRight(raw, "\r")
		quoted, end := false, -1
		for i, c := range raw {
			if c == '"' {
				quoted = !quoted
			} else if c == ':' && !quoted {
				end = i
				break
			}
		}
		if end < 0 {
			continue
		}
		head := strings.Split(raw[:end], ";")
		line := icsLine{name: strings.ToUpper(head[0]), text: raw[end+1:], parameters: map[string]string{}}
		for _, parameter := range head[1:] {
			name, value, _ := strings.Cut(parameter, "=")
			line.parameters[strings.ToUpper(name)] = strings.Trim(value, `"`)
		}
		lines = append(lines, line)
	}
	return lines
}

var unescapeICS = strings.NewReplacer(`\n`, "\n", `\N`, "\n", `\,`, ",", `\;`, ";", `\\`, `\`)

// calendar reads an iCalendar file as one object with a list of events.
func (j *job) calendar(data []byte) (workflow.Items, error) {
	text, err := decode(data, j.text("options.encoding", "utf8"))
	if err != nil {
		return nil, failure(j.item, "%v", err)
	}
	lines := parseICS(strings.TrimPrefix(text, "\ufeff"))
	if len(lines) == 0 || lines[0].name != "BEGIN" || !strings.EqualFold(lines[0].text, "VCALENDAR") {
		return nil, failure(j.item, "The file does not hold a calendar (ICS)")
	}
	var whole, event jsonobject.Object
	var events, inside, attendees []string
	for _, line := range lines {
		switch line.name {
		case "BEGIN":
			inside = append(inside, strings.ToUpper(line.text))
			if len(inside) == 2 {
				event, attendees = jsonobject.Object{}, nil
			}
			continue
		case "END":
			if len(inside) == 2 && inside[1] == "VEVENT" {
				if attendees != nil {
					event.Set("attendees", "["+strings.Join(attendees, ",")+"]")
				}
				events = append(events, event.String())
			}
			inside = inside[:max(len(inside)-1, 0)]
			continue
		}
		switch {
		case len(inside) == 1:
			for name, key := range map[string]string{"VERSION": "version", "PRODID": "prodId", "METHOD": "method", "X-WR-CALNAME": "name"} {
				if line.name == name {
					whole.Set(key, jsonobject.Quote(unescapeICS.Replace(line.text)))
				}
			}
		case len(inside) == 2 && inside[1] == "VEVENT":
			if line.name == "ATTENDEE" {
				attendees = append(attendees, person(line))
				continue
			}
			if key, value := eventProperty(line); key != "" {
				event.Set(key, value)
			}
		}
	}
	whole.Set("events", "["+strings.Join(events, ",")+"]")
	return j.extracted(whole.String())
}

// eventProperty is a line of an event as a member of its object; "" for what is not taken over.
func eventProperty(line icsLine) (key, value string) {
	switch line.name {
	case "SUMMARY", "UID", "LOCATION", "DESCRIPTION", "URL", "STATUS", "CLASS", "GEO", "COMMENT", "DURATION":
		return strings.ToLower(line.name), jsonobject.Quote(unescapeICS.Replace(line.text))
	case "TRANSP":
		return "timeTransparent", jsonobject.Quote(line.text)
	case "RRULE":
		return "recurrenceRule", recurrence(line.text)
	case "SEQUENCE", "PRIORITY":
		if n, err := strconv.Atoi(line.text); err == nil {
			return strings.ToLower(line.name), strconv.Itoa(n)
		}
	case "CATEGORIES":
		var list []string
		for name := range strings.SplitSeq(line.text, ",") {
			list = append(list, jsonobject.Quote(unescapeICS.Replace(name)))
		}
		return "categories", "[" + strings.Join(list, ",") + "]"
	case "ORGANIZER":
		return "organizer", person(line)
	}
	if key := map[string]string{"DTSTART": "start", "DTEND": "end", "DTSTAMP": "stamp", "CREATED": "created", "LAST-MODIFIED": "lastModified"}[line.name]; key != "" {
		return key, icsDate(line)
	}
	return "", ""
}

func recurrence(text string) string {
	var o jsonobject.Object
	for part := range strings.SplitSeq(text, ";") {
		name, value, _ := strings.Cut(part, "=")
		key := map[string]string{"FREQ": "frequency", "BYDAY": "byDay", "BYMONTH": "byMonth", "BYMONTHDAY": "byMonthday", "WKST": "workweekStart"}[name]
		if key == "" {
			key = strings.ToLower(name)
		}
		if _, err := strconv.Atoi(value); err != nil {
			value = jsonobject.Quote(value)
		}
		o.Set(key, value)
	}
	return o.String()
}

func person(line icsLine) string {
	var o jsonobject.Object
	if name := line.parameters["CN"]; name != "" {
		o.Set("name", jsonobject.Quote(name))
	}
	email := line.text
	if len(email) > 7 && strings.EqualFold(email[:7], "mailto:") {
		email = email[7:]
	}
	o.Set("email", jsonobject.Quote(email))
	for _, name := range []string{"ROLE", "PARTSTAT"} {
		if value := line.parameters[name]; value != "" {
			o.Set(strings.ToLower(name), jsonobject.Quote(value))
		}
	}
	if value := line.parameters["RSVP"]; value != "" {
		o.Set("rsvp", strconv.FormatBool(strings.EqualFold(value, "TRUE")))
	}
	return o.String()
}

// icsDate is a date as {date: ISO text in UTC}, with the type DATE for a whole day and the local time zone when one is named.
func icsDate(line icsLine) string {
	var o jsonobject.Object
	zone := time.UTC
	if name := line.parameters["TZID"]; name != "" {
		if found, err := time.LoadLocation(name); err == nil {
			zone = found
		}
		o.Set("timezone", jsonobject.Quote(name))
	}
	for _, layout := range []string{"20060102T150405Z", "20060102T150405", "20060102"} {
		at, err := time.ParseInLocation(layout, strings.TrimSpace(line.text), zone)
		if err != nil {
			continue
		}
		if strings.HasSuffix(layout, "Z") {
			at, _ = time.ParseInLocation(layout, strings.TrimSpace(line.text), time.UTC)
		}
		kind := "DATE-TIME"
		if layout == "20060102" {
			kind = "DATE"
		}
		o.Set("date", jsonobject.Quote(at.UTC().Format("2006-01-02T15:04:05.000Z")))
		o.Set("type", jsonobject.Quote(kind))
		return o.String()
	}
	return jsonobject.Quote(line.text)
}

// event makes a calendar file with one event of each item.
func (j *job) event() (workflow.Items, error) {
	options := gjson.Result{}
	for _, path := range []string{"additionalFields", "options"} {
		raw, err := j.call.Param(j.ctx, j.item, path)
		if err != nil {
			return nil, err
		}
		if options = gjson.ParseBytes(raw); len(options.Map()) > 0 {
			break
		}
	}
	zone := time.UTC
	if name := j.call.Workflow.Timezone; options.Get("useWorkflowTimezone").Bool() && name != "" {
		found, err := time.LoadLocation(name)
		if err != nil {
			return nil, failure(j.item, "The time zone %q of the workflow is not known", name)
		}
		zone = found
	}
	now := j.call.Now().UTC()
	start, err := j.moment("start", now, zone)
	if err != nil {
		return nil, err
	}
	allDay := j.flag("allDay", false)
	end, err := j.moment("end", start, zone)
	if err != nil {
		return nil, err
	}
	if end.Before(start) {
		return nil, failure(j.item, "The event ends before it starts")
	}
	var b strings.Builder
	line := func(head, text string) {
		if text != "" {
			foldICS(&b, head+":"+text)
		}
	}
	value := func(path string) string { return escapeICS(options.Get(path).String()) }
	line("BEGIN", "VCALENDAR")
	line("VERSION", "2.0")
	line("CALSCALE", "GREGORIAN")
	line("PRODID", "-//reprise//EN")
	line("METHOD", "PUBLISH")
	line("X-WR-CALNAME", value("calName"))
	line("BEGIN", "VEVENT")
	uid := options.Get("uid").String()
	if uid == "" {
		// The same in every attempt of the run, so that a repetition makes no second event.
		uid = uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "%s/%d", j.call.IdempotencyKey, j.item)).String()
	}
	line("UID", escapeICS(uid))
	line("SUMMARY", escapeICS(j.text("title", "")))
	line("DTSTAMP", now.Format("20060102T150405Z"))
	if allDay {
		if end = end.In(zone); !end.After(start) {
			end = start.AddDate(0, 0, 1)
		}
		line("DTSTART;VALUE=DATE", start.In(zone).Format("20060102"))
		line("DTEND;VALUE=DATE", end.Format("20060102"))
	} else {
		line("DTSTART", start.UTC().Format("20060102T150405Z"))
		line("DTEND", end.UTC().Format("20060102T150405Z"))
	}
	line("DESCRIPTION", value("description"))
	line("URL", options.Get("url").String())
	if at := options.Get("geolocationUi.geolocationValues"); at.Exists() {
		line("GEO", escapeParameter(at.Get("lat").String())+";"+escapeParameter(at.Get("lon").String()))
	}
	line("LOCATION", value("location"))
	line("STATUS", escapeParameter(options.Get("status").String()))
	if rule := options.Get("recurrenceRule").String(); rule != "" {
		line("RRULE", strings.TrimPrefix(rule, "RRULE:"))
	}
	if sequence := options.Get("sequence"); sequence.Exists() {
		line("SEQUENCE", strconv.FormatInt(sequence.Int(), 10))
	}
	line("X-MICROSOFT-CDO-BUSYSTATUS", escapeParameter(options.Get("busyStatus").String()))
	if who := options.Get("organizerUi.organizerValues"); who.Get("email").String() != "" {
		line(`ORGANIZER;CN="`+escapeParameter(who.Get("name").String())+`"`, "mailto:"+escapeParameter(who.Get("email").String()))
	}
	for _, who := range options.Get("attendeesUi.attendeeValues").Array() {
		line(`ATTENDEE;RSVP=`+strings.ToUpper(strconv.FormatBool(who.Get("rsvp").Bool()))+`;CN="`+escapeParameter(who.Get("name").String())+`"`, "mailto:"+escapeParameter(who.Get("email").String()))
	}
	line("END", "VEVENT")
	line("END", "VCALENDAR")
	if j.err != nil {
		return nil, j.err
	}
	name := options.Get("fileName").String()
	if name == "" {
		name = "event.ics"
	}
	return j.bytesFile(workflow.Binary{MimeType: "text/calendar", FileName: name}, []byte(b.String()))
}

// moment reads a date; one that names no zone is in zone.
func (j *job) moment(path string, fallback time.Time, zone *time.Location) (time.Time, error) {
	text := strings.TrimSpace(j.text(path, ""))
	if text == "" || j.err != nil {
		return fallback, j.err
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02"} {
		if at, err := time.ParseInLocation(layout, text, zone); err == nil {
			return at, nil
		}
	}
	return fallback, failure(j.item, "%s: %q is no date; write it like 2026-01-31T15:00:00", path, text)
}

func escapeICS(text string) string {
	return strings.NewReplacer(`\`, `\\`, ";", `\;`, ",", `\,`, "\r\n", `\n`, "\n", `\n`, "\r", "").Replace(text)
}

// escapeParameter drops what would end a parameter or the line.
func escapeParameter(text string) string {
	return strings.NewReplacer(`"`, "'", "\r", "", "\n", "").Replace(text)
}

// foldICS writes a line in pieces of up to 75 bytes, between letters.
func foldICS(b *strings.Builder, text string) {
	text = strings.NewReplacer("\r", "", "\n", "").Replace(text)
	for room := 75; len(text) > room; room = 74 {
		cut := room
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		b.WriteString(text[:cut] + "\r\n ")
		text = text[cut:]
	}
	b.WriteString(text + "\r\n")
}
