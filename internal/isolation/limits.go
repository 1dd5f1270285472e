package isolation

import "time"

const (
	// softHeapBytes is what the Go side of a child aims to stay below.
	softHeapBytes = 512 << 20
	// heapBytes is what it may take: the items on their way in and out are here, in
	// more than one copy.
	heapBytes = 1 << 30
)

// dataBytes is the limit of a child's data, for scripts that may allocate memory bytes. The
// engine reserves an eighth more, and for a moment has two virtual machines.
func dataBytes(memory uint64) uint64 { return 2*(memory+memory/8+8<<20) + heapBytes }

// cpuTime is the processor time that a script may take that runs for timeout: more than its
// parent lets it have, as the collector runs beside it. It matters when the parent is gone.
func cpuTime(timeout time.Duration) time.Duration { return 2*timeout + 5*time.Second }
