package cli

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// On a terminal top draws again and again, ends with q or Ctrl-C, and leaves the terminal as
// it was.
func TestTopOnATerminal(t *testing.T) {
	l := sharedLab(t)
	for name, key := range map[string]string{"q": "q", "ctrl-c": "\x03"} {
		t.Run(name, func(t *testing.T) {
			p := startOnTerminalWith(t, os.Args[0], func(c *exec.Cmd) { c.Stdout = c.Stdin.(*os.File) }, "top", "--nats", l.stack.NATSURL)
			p.sees(t, screenHome, 3)
			require.Contains(t, p.screen.String(), "COORDINATOR")
			p.types(t, key)
			require.Equal(t, 0, p.exitCode(t), p.screen.String())
			p.sees(t, screenLeave, 1)
			require.Equal(t, 1, strings.Count(p.screen.String(), screenEnter))
			after, err := unix.IoctlGetTermios(int(p.keyboard.Fd()), unix.TCGETS)
			require.NoError(t, err)
			require.NotZero(t, after.Lflag&unix.ICANON, "lines are read as before")
			require.NotZero(t, after.Lflag&unix.ECHO)
		})
	}
}
