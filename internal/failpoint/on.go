//go:build failpoints

package failpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

var (
	once   sync.Once
	mu     sync.Mutex
	points map[string]*point
)

// point is an entry of REPRISE_FAILPOINTS.
type point struct {
	left int    // passes, with the one that counts; 0 when it is over
	stop bool   // and do not kill
	file string // passes count from when it exists; "" is always
}

// Hit kills the process, as kill -9 would, or stops it, when REPRISE_FAILPOINTS names
// the point and it was passed as often as asked.
func Hit(name string) {
	once.Do(func() { points = parse(os.Getenv("REPRISE_FAILPOINTS")) })
	stop, now := pass(name)
	if !now {
		return
	}
	fmt.Fprintln(os.Stderr, "failpoint", name)
	if stop {
		stopHere()
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal is on its way
}

// pass counts a pass and says whether it is the one that counts.
func pass(name string) (stop, now bool) {
	mu.Lock()
	defer mu.Unlock()
	p := points[name]
	if p == nil || p.left == 0 {
		return false, false
	}
	if p.file != "" {
		if _, err := os.Stat(p.file); err != nil {
			return false, false
		}
	}
	p.left--
	return p.stop, p.left == 0
}

func parse(text string) map[string]*point {
	parsed := map[string]*point{}
	for entry := range strings.SplitSeq(text, ",") {
		entry, file, _ := strings.Cut(strings.TrimSpace(entry), "@")
		entry, stop := strings.CutSuffix(entry, ":stop")
		name, nth, _ := strings.Cut(entry, "=")
		if name == "" {
			continue
		}
		n, err := strconv.Atoi(nth)
		if err != nil || n < 1 {
			n = 1
		}
		parsed[name] = &point{left: n, stop: stop, file: file}
	}
	return parsed
}
