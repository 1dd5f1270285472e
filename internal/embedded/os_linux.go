package embedded

import (
	"os"
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill the child when the thread that started it
// ends, so that a kill -9 of this process leaves no server behind.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

func flock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
