//go:build failpoints && !linux

package failpoint

import "syscall"

// stopHere stops the process, soon.
func stopHere() { _ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP) }
