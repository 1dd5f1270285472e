//go:build !linux

package isolation

import "time"

// Elsewhere a child has the limits of its virtual machine and its parent's clock.

func limitMemory(uint64) error { return nil }
func limitCPU(time.Duration)   {}
func confine() (string, error) {
	return "the code of Code nodes has no limits of the operating system, only those of its virtual machine and the clock: they need Linux", nil
}
