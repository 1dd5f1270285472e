package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// screenOf is out when a picture can be drawn on it again and again.
func screenOf(out io.Writer) (*os.File, bool) {
	f, ok := out.(*os.File)
	return f, ok && isTerminal(f) && os.Getenv("TERM") != "dumb"
}

// What terminals understand since the VT100: the second screen, the cursor, and whether
// long lines go on in the next.
const (
	screenEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l"
	screenLeave = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	screenHome  = "\x1b[H"
	lineRest    = "\x1b[K\r\n" // clear the rest of the line
	screenRest  = "\x1b[J"
)

// Keys that end the picture.
const keyCtrlC, keyCtrlD = 3, 4

// live draws until q, Ctrl-C or the end of ctx. The terminal is left as it was.
func (t *top) live(ctx context.Context, screen *os.File, keyboard io.Reader) error {
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	if k, ok := keyboard.(*os.File); ok && isTerminal(k) {
		before, err := term.MakeRaw(int(k.Fd()))
		if err != nil {
			return fmt.Errorf("read single keys: %w", err)
		}
		defer func() { _ = term.Restore(int(k.Fd()), before) }()
		go readKeys(k, quit) // reads until the program ends: there is no way to take back a read
	}
	fmt.Fprint(screen, screenEnter)
	defer fmt.Fprint(screen, screenLeave)
	ticker := time.NewTicker(topEvery)
	defer ticker.Stop()
	for {
		if err := t.look(ctx); err != nil && ctx.Err() != nil {
			return nil
		}
		if _, err := screen.WriteString(t.frame(screen)); err != nil {
			return fmt.Errorf("draw: %w", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func readKeys(keyboard io.Reader, quit func()) {
	var keys [16]byte
	for {
		n, err := keyboard.Read(keys[:])
		if err != nil || bytes.ContainsAny(keys[:n], "qQ") || bytes.IndexByte(keys[:n], keyCtrlC) >= 0 || bytes.IndexByte(keys[:n], keyCtrlD) >= 0 {
			quit()
			return
		}
	}
}

// frame is the picture for a screen: as many lines as fit, over the last picture.
func (t *top) frame(screen *os.File) string {
	var b bytes.Buffer
	style := styleFor(screen)
	if t.err != nil {
		fmt.Fprintf(&b, "%s %s\n", style.red("no answer:"), oneLine(t.err.Error()))
	}
	t.draw(&b, style)
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if _, height, err := term.GetSize(int(screen.Fd())); err == nil && height > 1 && len(lines) > height-1 {
		more := fmt.Sprintf("… %d lines more", len(lines)-(height-2))
		lines = append(lines[:height-2], style.dim(more))
	}
	return screenHome + strings.Join(lines, lineRest) + lineRest + screenRest
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
