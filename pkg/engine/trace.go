package engine

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// typeWidth is the length of the longest common connection type,
// ai_languageModel.
const typeWidth = 16

// FormatTrace is a notice as a line of the stack trace that people read; ""
// for notices about the execution. width is what names are padded to, the
// length in characters of the longest one.
func FormatTrace(l Live, width int) string {
	stack := "[" + strings.Join(l.Stack, ", ") + "]"
	name := l.Node + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(l.Node)))
	switch l.Kind {
	case LiveNodeStarted:
		return fmt.Sprintf("▶ %s stack after pop: %s", name, stack)
	case LiveNodeFinished:
		mark, failure := "✓", ""
		if l.Status == StatusError {
			mark, failure = "✗", " error: "+l.Error
		}
		return fmt.Sprintf("%s %s output as %-*s stack: %s%s", mark, name, typeWidth, l.Type, stack, failure)
	}
	return ""
}
