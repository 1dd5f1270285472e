package simulation

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	flagStart      = flag.Uint64("start", 1, "first seed")
	flagSeeds      = flag.Int("seeds", 0, "number of seeds; 0 is a short run")
	flagAtLeast    = flag.Int("atleast", 0, "executions after which no seed is begun; counts instead of -seeds")
	flagStride     = flag.Uint64("stride", 1, "distance of the seeds")
	flagExecutions = flag.Int("executions", 40, "executions that clients submit in a simulation")
	flagFirst      = flag.Bool("first", false, "stop at the first seed that fails")
	flagBugs       = flag.String("bugs", "", "planted bugs to look for, by name, separated by commas; all, or empty for a few")
	flagTrace      = flag.Bool("trace", false, "print every event")
)

func TestMain(m *testing.M) {
	flag.Parse()
	// One goroutine runs at a time, so that the seed alone decides which.
	runtime.GOMAXPROCS(1)
	os.Exit(m.Run())
}

// shortRun is the number of seeds that are run among all other tests.
const shortRun = 12

// TestSimulation runs seeds. `make simulate` runs more of them, or one with its trace.
func TestSimulation(t *testing.T) {
	var lines func(string)
	if *flagTrace {
		lines = func(line string) { fmt.Println(line) }
	}
	begun := time.Now()
	var total outcomeOf
	seeds := 0
	count := *flagSeeds
	if count == 0 {
		count = shortRun
	}
	more := func() bool { return seeds < count }
	if *flagAtLeast > 0 {
		more = func() bool { return total.executions < *flagAtLeast }
	}
	for seed := *flagStart; more(); seed += *flagStride {
		out := simulate(t, seed, *flagExecutions, lines)
		seeds++
		total.executions += out.executions
		total.steps += out.steps
		total.commits += out.commits
		total.repeated += out.repeated
		total.took += out.took
		if out.failure != nil {
			t.Errorf("seed %d: %v\n%+v\nreplay it with: make simulate START=%d SEEDS=1 TRACE=1", seed, out.failure, out.profile, seed)
			if *flagFirst {
				break
			}
		}
	}
	took := time.Since(begun)
	t.Logf("%d seeds, %d executions, %d commits, %d events, %d runs repeated in the known window, %s simulated, in %s: %.0f executions/s",
		seeds, total.executions, total.commits, total.steps, total.repeated, total.took.Round(time.Second), took.Round(time.Millisecond), float64(total.executions)/took.Seconds())
}

// TestSameSeedSameEvents: what a seed found can be looked at again.
func TestSameSeedSameEvents(t *testing.T) {
	for seed := *flagStart; seed < *flagStart+5; seed++ {
		first, second := simulate(t, seed, *flagExecutions, nil), simulate(t, seed, *flagExecutions, nil)
		require.Equal(t, first.hash, second.hash, "seed %d", seed)
		require.Equal(t, first.steps, second.steps, "seed %d", seed)
	}
	require.NotEqual(t, simulate(t, 1, *flagExecutions, nil).hash, simulate(t, 2, *flagExecutions, nil).hash)
}
