package isolation

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pythonPossible: without Landlock a script could read what this process can, such as the
// credentials file and the environment with its key.
func pythonPossible() error {
	if landlockVersion() == 0 {
		return errors.New("this system has no Landlock (Linux 5.13 and later, not switched off), so that scripts in Python could read the worker's files")
	}
	return nil
}

// enterPython makes this process a confined interpreter. args are the interpreter, the directory
// for writing, address space in bytes, processor time in seconds and what may be read.
func enterPython(args []string) int {
	if len(args) != 5 {
		fmt.Fprintln(os.Stderr, "unexpected arguments")
		return 2
	}
	// All that follows concerns one thread, the one that becomes the interpreter.
	runtime.LockOSThread()
	err := becomePython(args[0], args[1], args[2], args[3], filepath.SplitList(args[4]))
	fmt.Fprintln(os.Stderr, err)
	return 2
}

func becomePython(program, temp, memory, cpu string, readable []string) error {
	space, err1 := strconv.ParseUint(memory, 10, 64)
	seconds, err2 := strconv.ParseUint(cpu, 10, 64)
	if err := errors.Join(err1, err2, os.Chdir(temp)); err != nil {
		return err
	}
	goFirst()
	if err := limitFiles(64, maxTempFileBytes); err != nil {
		return err
	}
	if err := unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: seconds, Max: seconds + 5}); err != nil {
		return fmt.Errorf("limit processor time: %w", err)
	}
	rights := map[string]uint64{temp: mayWrite}
	for _, path := range readable {
		rights[path] = mayRead
	}
	rights["/dev/null"] |= unix.LANDLOCK_ACCESS_FS_WRITE_FILE
	if err := landlock(rights); err != nil {
		return err
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	missing := ""
	if err := denyCalls(reachingOut()); err != nil {
		missing = fmt.Sprintf("system calls of Python are not filtered: %v", err)
	}
	argv := append([]string{program}, "-I", "-S", "-B", "-X", "utf8", "-c", pythonSource, missing)
	return replaceWith(program, argv, space)
}

// dropCapabilities makes root a user without powers once it executes something.
func dropCapabilities() error {
	for capability := range uintptr(64) {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) { // the last was the one before
			return nil
		}
		if errors.Is(err, unix.EPERM) {
			return nil // no power to give any up
		}
		if err != nil {
			return fmt.Errorf("give up capabilities: %w", err)
		}
	}
	return nil
}

// replaceWith is execve with an address space that is too small for this program: nothing is
// allocated in between.
func replaceWith(program string, argv []string, space uint64) error {
	path, err := unix.BytePtrFromString(program)
	if err != nil {
		return err
	}
	pointers := make([]*byte, 0, len(argv)+1)
	for _, arg := range argv {
		p, err := unix.BytePtrFromString(strings.ReplaceAll(arg, "\x00", ""))
		if err != nil {
			return err
		}
		pointers = append(pointers, p)
	}
	pointers = append(pointers, nil)
	environment := []*byte{nil}
	limit := unix.Rlimit{Cur: space, Max: space}
	if _, _, errno := unix.RawSyscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_AS, uintptr(unsafe.Pointer(&limit)), 0, 0, 0); errno != 0 {
		return fmt.Errorf("limit memory: %w", errno)
	}
	_, _, errno := unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&pointers[0])), uintptr(unsafe.Pointer(&environment[0])))
	runtime.KeepAlive(pointers)
	return fmt.Errorf("execute %s: %w", program, errno)
}
