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
	counts map[string]int
)

// Hit kills the process, as kill -9 would, when REPRISE_FAILPOINTS names the
// point and it was passed as often as asked.
func Hit(name string) {
	once.Do(load)
	mu.Lock()
	defer mu.Unlock()
	left, ok := counts[name]
	if !ok {
		return
	}
	if left > 1 {
		counts[name] = left - 1
		return
	}
	fmt.Fprintln(os.Stderr, "failpoint", name)
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal is on its way
}

func load() {
	counts = map[string]int{}
	for _, entry := range strings.Split(os.Getenv("REPRISE_FAILPOINTS"), ",") {
		name, nth, _ := strings.Cut(strings.TrimSpace(entry), "=")
		if name == "" {
			continue
		}
		n, err := strconv.Atoi(nth)
		if err != nil || n < 1 {
			n = 1
		}
		counts[name] = n
	}
}
