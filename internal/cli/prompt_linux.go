package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// flush drops what was typed and not read yet.
func flush(terminal *os.File) {
	_ = unix.IoctlSetInt(int(terminal.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}
