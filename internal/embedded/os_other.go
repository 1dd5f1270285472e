//go:build !linux

package embedded

import (
	"os"
	"os/exec"
)

// dieWithParent can do nothing here: only Linux ties a child to its parent.
// A kill -9 of this process leaves redis-server running; Shutdown does not.
func dieWithParent(*exec.Cmd) {}

// flock is not portable; elsewhere two processes on one directory are not
// noticed.
func flock(*os.File) error { return nil }
