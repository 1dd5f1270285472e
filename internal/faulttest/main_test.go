package faulttest

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/reprise-engine/reprise/internal/cluster"
	"github.com/reprise-engine/reprise/internal/redistest"
)

// full runs what takes long: outages of their full length, every failpoint at
// several moments.
var full = flag.Bool("full", false, "run all fault tests in full length (about five minutes)")

// atOnce is how many tests run at the same time: they wait more than they work.
const atOnce = 4

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", strconv.Itoa(max(atOnce, runtime.GOMAXPROCS(0)))); err != nil {
			panic(err) // the flag is one of package testing
		}
	}
	code := m.Run()
	cluster.RemovePrograms()
	redistest.StopShared()
	recoveries.print()
	os.Exit(code)
}

// within is how long an execution may take over a fault with short leases, on a
// busy machine, unless a test says less.
const within = 60 * time.Second

// recoveries are the times that are printed at the end.
var recoveries table

type table struct {
	mu   sync.Mutex
	rows []row
}

type row struct {
	fault, what string
	took, limit time.Duration
}

// recovered notes how long a recovery took and fails the test when that is too long.
func recovered(t *testing.T, fault, what string, took, limit time.Duration) {
	t.Helper()
	recoveries.mu.Lock()
	recoveries.rows = append(recoveries.rows, row{fault, what, took, limit})
	recoveries.mu.Unlock()
	if took > limit {
		t.Errorf("%s: %s after %s, want at most %s", fault, what, took.Round(time.Millisecond), limit)
	}
}

func (r *table) print() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.rows) == 0 {
		return
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "\nfault\tuntil\ttook\tat most")
	for _, row := range r.rows {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", row.fault, row.what, row.took.Round(10*time.Millisecond), row.limit)
	}
	_ = w.Flush()
}
