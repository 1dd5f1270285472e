package chaos

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What a chaos has started ends with it: after Ctrl-C, and after a kill -9.
func TestNothingOutlivesTheRun(t *testing.T) {
	for name, end := range map[string]syscall.Signal{"interrupted": syscall.SIGINT, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			temporary := t.TempDir()
			cmd := exec.Command(program(t)[0], "run")
			cmd.Env = append(os.Environ(), "TMPDIR="+temporary)
			cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			lines := bufio.NewScanner(out)
			require.True(t, lines.Scan(), "it says that it runs")
			children := childrenOf(t, cmd.Process.Pid)
			require.Len(t, children, 7, "NATS, Redis, two coordinators and three workers")
			require.NoError(t, cmd.Process.Signal(end))
			for lines.Scan() { // until it has ended
			}
			require.Error(t, cmd.Wait())
			require.Eventually(t, func() bool {
				for _, stat := range children {
					if alive(stat) {
						return false
					}
				}
				return true
			}, 10*time.Second, 20*time.Millisecond)
			if end == syscall.SIGINT {
				left, err := filepath.Glob(filepath.Join(temporary, "reprise-*"))
				require.NoError(t, err)
				require.Empty(t, left, "its data are removed")
			}
		})
	}
}

// childrenOf are the /proc/…/stat files of a process's children.
func childrenOf(t *testing.T, pid int) (stats []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	for _, stat := range all {
		if fields := fieldsOf(stat); len(fields) > 1 && fields[1] == fmt.Sprint(pid) {
			stats = append(stats, stat)
		}
	}
	return stats
}

// fieldsOf are the fields of a stat file after the name: state, parent …
func fieldsOf(stat string) []string {
	data, err := os.ReadFile(stat)
	if err != nil {
		return nil // it has ended
	}
	text := string(data)
	return strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
}

func alive(stat string) bool {
	fields := fieldsOf(stat)
	return len(fields) > 0 && fields[0] != "Z" && fields[0] != "X"
}
