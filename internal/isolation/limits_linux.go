package isolation

import (
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// limitMemory bounds what this process may allocate. What it has reserved and not touched
// counts, what it has mapped without access (Go reserves much) does not.
func limitMemory(bytes uint64) error {
	if err := unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: bytes, Max: bytes}); err != nil {
		return fmt.Errorf("limit memory: %w", err)
	}
	goFirst()
	return nil
}

// goFirst: no core dumps, and when the machine is short of memory this process goes before
// its parent.
func goFirst() {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0)
}

// limitCPU ends this process when it takes much more processor time than a script may:
// the parent does not kill it if it was killed itself.
func limitCPU(timeout time.Duration) {
	var used unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &used) != nil {
		return
	}
	seconds := uint64(used.Utime.Sec+used.Stime.Sec) + uint64(cpuTime(timeout)/time.Second) + 1
	_ = unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: seconds, Max: unix.RLIM_INFINITY})
}

// limitFiles bounds open files, and the size of what is written.
func limitFiles(open, bytes uint64) error {
	for resource, most := range map[int]uint64{unix.RLIMIT_NOFILE: open, unix.RLIMIT_FSIZE: bytes} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("limit files: %w", err)
		}
	}
	return nil
}

// confine takes from this process, for good, what running scripts does not need. missing names
// what the system does not grant, "" is nothing: the limits of the virtual machine hold anyway.
func confine() (missing string, err error) {
	if err := limitFiles(16, 0); err != nil {
		return "", err
	}
	if err := denyCalls(append(filesAndPrograms(), reachingOut()...)); err != nil {
		return fmt.Sprintf("system calls of the code of Code nodes are not filtered: %v", err), nil
	}
	return "", nil
}

// oneThread runs f on a thread of its own. What the system grants or takes per thread (no
// new privileges, Landlock) would otherwise hit another one.
func oneThread(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return f()
}
