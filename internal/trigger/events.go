package trigger

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
)

// maxEvent bounds an event, and a line of one.
const maxEvent = 4 << 20

// event is one of a stream of server-sent events.
type event struct {
	id   string // of this event, or the last one that had any
	name string // "" is "message"
	data string
}

// readEvents reads a stream in the format text/event-stream to its end, which is an error: a stream
// has none. take is told each event, in order, and ends the reading with an error; retry, for how long the
// server wants to be left alone after the end. start has the id that is the last one before.
func readEvents(r io.Reader, start event, take func(event) error, retry func(time.Duration)) error {
	lines := &lineReader{r: bufio.NewReader(r)}
	e, size, some := event{id: start.id}, 0, false
	var data strings.Builder
	for first := true; ; first = false {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		if first {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		if line == "" {
			e.data = data.String()
			if some {
				if err := take(e); err != nil {
					return err
				}
			}
			e, size, some = event{id: e.id}, 0, false
			data.Reset()
			continue
		}
		if size += len(line); size > maxEvent {
			return errLongEvent
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			if !strings.ContainsRune(value, 0) {
				e.id = value
			}
		case "event":
			e.name = value
		case "data":
			if some {
				data.WriteByte('\n')
			}
			some = true
			data.WriteString(value)
		case "retry":
			if ms, err := strconv.ParseUint(value, 10, 31); err == nil {
				retry(time.Duration(ms) * time.Millisecond)
			}
		}
	}
}

// lineReader reads lines that end with CR LF, LF or CR. One that was not ended does not count.
type lineReader struct {
	r       *bufio.Reader
	afterCR bool
	line    []byte
}

var errLongEvent = errors.New("an event is too large")

func (l *lineReader) next() (string, error) {
	l.line = l.line[:0]
	for {
		b, err := l.r.ReadByte()
		if err != nil {
			return "", err
		}
		second := l.afterCR && b == '\n' // of CR LF
		l.afterCR = b == '\r'
		switch {
		case second:
		case b == '\n' || b == '\r':
			return string(l.line), nil
		case len(l.line) == maxEvent:
			return "", errLongEvent
		default:
			l.line = append(l.line, b)
		}
	}
}
