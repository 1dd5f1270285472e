package cli

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDemo starts the program itself, as people do.
func TestDemo(t *testing.T) {
	program := filepath.Join(t.TempDir(), "reprise")
	out, err := exec.Command("go", "build", "-o", program, "github.com/reprise-engine/reprise/cmd/reprise").CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Run("is played to its end", func(t *testing.T) { testDemo(t, program) })
	t.Run("is killed", func(t *testing.T) { testDemoKilled(t, program) })
}

// demoProcess is a demo. Whatever it starts has dir in its command line: the
// workers their program, Redis its directory.
func demoProcess(t *testing.T, program string) (cmd *exec.Cmd, dir string) {
	t.Helper()
	dir = t.TempDir()
	own := filepath.Join(dir, "reprise")
	require.NoError(t, os.Link(program, own))
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	cmd = exec.CommandContext(ctx, own, "demo")
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	return cmd, dir
}

// running lists the processes whose command line contains text.
func running(t *testing.T, text string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	var found []string
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err == nil && bytes.Contains(line, []byte(text)) {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

func testDemo(t *testing.T, program string) {
	cmd, dir := demoProcess(t, program)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	data, err := cmd.Output()
	out := string(data)
	require.NoError(t, err, "%s\n%s", out, &stderr)
	require.Empty(t, stderr.String())
	require.NotContains(t, out, "\x1b", "colours are for terminals")
	require.Contains(t, out, "worker A is killed (SIGKILL)")
	require.Contains(t, out, "The card was charged once")
	require.Contains(t, out, `answered {"response":"42"}`)
	require.Contains(t, out, `answered {"charge":"ch_1","amount":42}`)

	keys := regexp.MustCompile(`with key ([^:,\s]+)`).FindAllStringSubmatch(out, -1)
	require.Len(t, keys, 2, out)
	require.Equal(t, keys[0][1], keys[1][1])
	workers := regexp.MustCompile(`worker [AB] runs \(process (\d+)\)`).FindAllStringSubmatch(out, -1)
	require.Len(t, workers, 2, out)
	require.NotEqual(t, workers[0][1], workers[1][1])
	require.Less(t, strings.Index(out, "tool Shout done"), strings.Index(out, "worker A is killed"))
	require.Empty(t, running(t, dir), "processes that outlive the demo")
}

// testDemoKilled kills the demo itself: nothing it started may outlive it.
func testDemoKilled(t *testing.T, program string) {
	cmd, dir := demoProcess(t, program)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var story []byte
	buffer := make([]byte, 4096)
	for !bytes.Contains(story, []byte("worker A runs")) {
		n, err := out.Read(buffer)
		story = append(story, buffer[:n]...)
		require.NoError(t, err, "%s", story)
	}
	require.GreaterOrEqual(t, len(running(t, dir)), 2, "the demo and its worker")
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.Eventually(t, func() bool { return len(running(t, dir)) == 0 }, 20*time.Second, 20*time.Millisecond)
}
