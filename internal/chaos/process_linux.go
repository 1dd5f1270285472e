package chaos

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill the child when the thread that started it
// ends, and keeps the terminal's Ctrl-C, which is meant for us, from it.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
