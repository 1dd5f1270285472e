package workflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// SyntaxError says where and why a document is no JSON.
type SyntaxError struct {
	// Line and Column count from 1; Column counts characters.
	Line, Column int
	// Message is what is wrong there.
	Message string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("not JSON: line %d, column %d: %s", e.Line, e.Column, e.Message)
}

var (
	bomUTF8    = []byte("\xef\xbb\xbf")
	bomUTF16LE = []byte("\xff\xfe")
	bomUTF16BE = []byte("\xfe\xff")
)

// checkJSON returns data without byte order mark and surrounding space, or a
// *SyntaxError.
func checkJSON(data []byte) ([]byte, error) {
	whole := bytes.TrimPrefix(data, bomUTF8)
	body := bytes.TrimSpace(whole)
	switch {
	case len(body) == 0:
		return nil, &SyntaxError{1, 1, "the document is empty"}
	case bytes.HasPrefix(body, bomUTF16LE), bytes.HasPrefix(body, bomUTF16BE):
		return nil, &SyntaxError{1, 1, "the document is UTF-16 text, save it as UTF-8"}
	case json.Valid(body):
		return body, nil
	}
	err := json.Unmarshal(whole, new(json.RawMessage))
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return nil, &SyntaxError{1, 1, fmt.Sprint(err)}
	}
	return nil, locate(whole, body, syntax)
}

// locate turns the offset of a json.SyntaxError (the number of bytes read
// when it was noticed) into line and column.
func locate(whole, body []byte, syntax *json.SyntaxError) *SyntaxError {
	at := max(0, min(int(syntax.Offset)-1, len(whole)))
	message := syntax.Error()
	if strings.Contains(message, "unexpected end") {
		at = len(whole)
		message = "the document ends too early; it may have been cut off"
	} else {
		message += fmt.Sprintf(", at %q", clip(string(whole[at:]), 20))
	}
	if lower := bytes.ToLower(body[:min(len(body), 64)]); bytes.HasPrefix(lower, []byte("<!doctype")) ||
		bytes.HasPrefix(lower, []byte("<html")) || bytes.HasPrefix(lower, []byte("<?xml")) {
		message = "the document is a web page or XML, not a workflow file"
	}
	before := whole[:at]
	start := bytes.LastIndexByte(before, '\n') + 1
	return &SyntaxError{
		Line:    bytes.Count(before, []byte{'\n'}) + 1,
		Column:  utf8.RuneCount(before[start:]) + 1,
		Message: message,
	}
}

// clip shortens a text to n characters for a message, up to the end of its line.
func clip(s string, n int) string {
	s, _, _ = strings.Cut(s, "\n")
	for i := range s {
		if n == 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}
