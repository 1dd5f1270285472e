package faulttest

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/cluster"
	"github.com/reprise-engine/reprise/pkg/engine"
)

// smallDisk is a redis-server whose files may grow only so far: what it sees then is
// what it sees on a full disk, a write that fails.
type smallDisk struct {
	addr, dir string
	pid       int
}

func startOnSmallDisk(t *testing.T) *smallDisk {
	t.Helper()
	port := cluster.FreePort(t)
	d := &smallDisk{addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), dir: t.TempDir()}
	// The signal for it would end the process; it is to see the error.
	cmd := exec.Command("sh", "-c", `trap '' XFSZ; exec redis-server "$@"`, "sh", "--port", strconv.Itoa(port), "--bind", "127.0.0.1",
		"--dir", d.dir, "--save", "", "--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	d.pid = cmd.Process.Pid
	require.Eventually(t, func() bool {
		conn, err := net.DialTimeout("tcp", d.addr, time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, within, 10*time.Millisecond)
	return d
}

// full makes every further write to a file fail.
func (d *smallDisk) full(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(d.dir, "appendonlydir", "*.incr.aof"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	info, err := os.Stat(files[0])
	require.NoError(t, err)
	d.limit(t, uint64(info.Size()))
}

// room lets files grow again.
func (d *smallDisk) room(t *testing.T) {
	t.Helper()
	d.limit(t, 1<<40)
}

func (d *smallDisk) limit(t *testing.T, bytes uint64) {
	t.Helper()
	const fileSize = 1 // RLIMIT_FSIZE
	limit := syscall.Rlimit{Cur: bytes, Max: 1 << 50}
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(d.pid), fileSize, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	require.Zero(t, errno, "limit the size of files: %v", errno)
}

// The disk of Redis is full: readiness says so, new work is refused, what runs is kept,
// and all goes on when there is room again.
func TestRedisDiskFull(t *testing.T) {
	t.Parallel()
	disk := startOnSmallDisk(t)
	c := cluster.New(t, cluster.Options{Lease: calm, RedisVia: func(string) string { return disk.addr }})
	c.UseRedis("redis://" + disk.addr + "/0")
	c.StartAll()
	arrived, open := c.Ledger.Hold("Beta")
	ids := c.Submit(5)
	arrives(t, arrived, len(ids))
	for _, id := range ids {
		c.AwaitDone(id, "Alpha", within)
		c.AwaitDone(id, "Gamma", within)
	}
	disk.full(t)
	// Redis notices at its first write, which it keeps in memory until there is room.
	c.Await(within, func() string {
		id := cluster.NewIDs(1)[0]
		err := c.SubmitOnce(c.Workflow, id)
		if err == nil {
			ids = append(ids, id)
			return "work is taken"
		}
		return ""
	})
	recovered(t, c, "Redis' disk full", "coordinators say that they are not ready", c.AwaitReadiness(false, within, c.Coordinators...), recoveryLimit)
	open()
	c.Await(within, func() string {
		for _, w := range c.Workers {
			if strings.Contains(w.Log(), "result is not confirmed yet") {
				return ""
			}
		}
		return "no result was refused"
	})
	states, err := c.Look(ids...)
	require.NoError(t, err)
	for _, s := range states {
		require.Equal(t, engine.StatusRunning, s.Meta.Status)
	}
	disk.room(t)
	took := c.AwaitFinished(ids, within)
	recovered(t, c, "Redis' disk full, then room", "running executions finished", took, recoveryLimit)
	c.Settled(append(ids, c.Submit(3)...), within, cluster.Once)
}
