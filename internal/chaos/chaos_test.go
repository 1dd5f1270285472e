package chaos

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMain lets this program be the children of the fleets that its tests start.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "child" {
		if err := Child(context.Background(), os.Args[2], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func program(t *testing.T) []string {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	return []string{path, "child"}
}

// A short chaos with everything in it: the promise holds.
func TestThePromiseHolds(t *testing.T) {
	report, err := Run(t.Context(), Config{
		Program: program(t), Duration: 12 * time.Second, Every: 1500 * time.Millisecond, Rate: 8, Seed: 7,
		Lease: 2 * time.Second, Say: func(line string) { t.Log(line) }, LogDir: os.Getenv("CHAOS_LOGS"),
	})
	require.NoError(t, err)
	report.Print(t.Output())
	require.True(t, report.Held)
	require.GreaterOrEqual(t, len(report.Faults), 2)
}
