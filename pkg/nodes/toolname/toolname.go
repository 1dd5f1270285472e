// Package toolname makes names of nodes into names of tools that model providers
// accept. The Agent and the gates that stand before its tools must agree on them.
package toolname

// Max is OpenAI's limit for the name of a tool.
const Max = 64

// Legal replaces what providers do not accept in a tool's name; a run of
// such characters becomes one underscore.
func Legal(name string) string {
	legal := make([]byte, 0, len(name))
	replaced := false
	for i := 0; i < len(name) && len(legal) < Max; i++ {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
			legal, replaced = append(legal, c), false
		case !replaced:
			legal, replaced = append(legal, '_'), true
		}
	}
	if len(legal) == 0 {
		return "tool"
	}
	return string(legal)
}
