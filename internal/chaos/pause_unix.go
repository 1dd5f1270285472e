//go:build unix

package chaos

import (
	"os"
	"syscall"
)

// canPause says whether processes can be stopped for a while.
const canPause = true

// stopOrContinue stops a process where it is, or lets it go on.
func stopOrContinue(p *os.Process, stop bool) error {
	if stop {
		return p.Signal(syscall.SIGSTOP)
	}
	return p.Signal(syscall.SIGCONT)
}
