package isolation

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Calls that exist on some architectures alone.
var oldCalls = map[string]struct{ files, processes []int }{
	// open, creat; fork, vfork.
	"amd64": {files: []int{2, 85}, processes: []int{57, 58}},
}

// reachingOut are the system calls with which code reaches out of its process.
func reachingOut() []int {
	return append([]int{
		unix.SYS_SOCKET, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_IO_URING_SETUP,
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_GETFD,
		unix.SYS_TKILL, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO,
		unix.SYS_SHMGET, unix.SYS_MSGGET, unix.SYS_SEMGET, unix.SYS_MQ_OPEN, unix.SYS_MEMFD_CREATE,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_USERFAULTFD,
		unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE,
	}, oldCalls[runtime.GOARCH].processes...)
}

// filesAndPrograms open files and start programs.
func filesAndPrograms() []int {
	return append([]int{
		unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_EXECVE, unix.SYS_EXECVEAT,
	}, oldCalls[runtime.GOARCH].files...)
}

// auditArch is what seccomp calls the architecture.
var auditArch = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

const (
	// x32Bit marks a second set of numbers for the same calls.
	x32Bit = 0x40000000

	// Offsets in struct seccomp_data; the first argument's low half.
	numberAt, archAt, argumentAt = 0, 4, 16

	opLoad    = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	opEqual   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	opAtLeast = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	opHasBits = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	opAnswer  = unix.BPF_RET | unix.BPF_K

	refuse = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	absent = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	allow  = unix.SECCOMP_RET_ALLOW
)

// denyCalls makes system calls fail with EPERM, in all threads of this process and in
// what it executes. New processes (threads are none) and signals to others are always refused.
func denyCalls(numbers []int) error {
	arch, ok := auditArch[runtime.GOARCH]
	if !ok {
		return fmt.Errorf("no filter is known for %s", runtime.GOARCH)
	}
	filter := callFilter(arch, numbers)
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	return oneThread(func() error {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("give up new privileges: %w", err)
		}
		_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
		runtime.KeepAlive(filter)
		if errno != 0 {
			return fmt.Errorf("seccomp: %w", errno)
		}
		return nil
	})
}

func callFilter(arch uint32, numbers []int) []unix.SockFilter {
	filter := []unix.SockFilter{
		{Code: opLoad, K: archAt},
		{Code: opEqual, K: arch, Jt: 1},
		{Code: opAnswer, K: refuse},
		{Code: opLoad, K: numberAt},
	}
	add := func(f ...unix.SockFilter) { filter = append(filter, f...) }
	if arch == unix.AUDIT_ARCH_X86_64 {
		add(unix.SockFilter{Code: opAtLeast, K: x32Bit, Jf: 1}, unix.SockFilter{Code: opAnswer, K: refuse})
	}
	for _, number := range numbers {
		add(unix.SockFilter{Code: opEqual, K: uint32(number), Jf: 1}, unix.SockFilter{Code: opAnswer, K: refuse})
	}
	// C libraries start threads with clone when there is no clone3, whose flags no filter sees.
	add(unix.SockFilter{Code: opEqual, K: unix.SYS_CLONE3, Jf: 1}, unix.SockFilter{Code: opAnswer, K: absent})
	argument := func(number uint32, tests ...unix.SockFilter) {
		add(unix.SockFilter{Code: opEqual, K: number, Jf: uint8(len(tests) + 1)}, unix.SockFilter{Code: opLoad, K: argumentAt})
		add(tests...)
	}
	argument(unix.SYS_CLONE,
		unix.SockFilter{Code: opHasBits, K: unix.CLONE_THREAD, Jf: 1},
		unix.SockFilter{Code: opAnswer, K: allow}, unix.SockFilter{Code: opAnswer, K: refuse})
	own := uint32(os.Getpid())
	for _, number := range []uint32{unix.SYS_KILL, unix.SYS_TGKILL} {
		argument(number,
			unix.SockFilter{Code: opEqual, K: own, Jf: 1},
			unix.SockFilter{Code: opAnswer, K: allow}, unix.SockFilter{Code: opAnswer, K: refuse})
	}
	argument(unix.SYS_PRLIMIT64, // 0 is oneself
		unix.SockFilter{Code: opEqual, K: 0, Jt: 1},
		unix.SockFilter{Code: opEqual, K: own, Jf: 1},
		unix.SockFilter{Code: opAnswer, K: allow}, unix.SockFilter{Code: opAnswer, K: refuse})
	add(unix.SockFilter{Code: opAnswer, K: allow})
	return filter
}
