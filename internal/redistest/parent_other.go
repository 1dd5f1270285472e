//go:build !linux

package redistest

import "os/exec"

// dieWithParent does nothing where the kernel has no parent-death signal: a
// test process that dies without cleaning up leaves its server behind.
func dieWithParent(*exec.Cmd) {}
