//go:build failpoints

package failpoint

import (
	"runtime"
	"syscall"
)

// stopHere stops the process and returns when it is continued. The signal is for this very
// thread, which so does not go on before it takes effect; one for the process might be
// taken by another thread a moment later.
func stopHere() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_, _, _ = syscall.RawSyscall(syscall.SYS_TGKILL, uintptr(syscall.Getpid()), uintptr(syscall.Gettid()), uintptr(syscall.SIGSTOP))
}
