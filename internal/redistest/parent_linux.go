package redistest

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill the child when the test process dies
// without cleaning up (a panic, a timeout, kill -9).
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
