package faulttest

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/reprise-engine/reprise/internal/cluster"
	"github.com/reprise-engine/reprise/internal/redistest"
)

// full runs what takes long: outages of their full length, every failpoint at
// several moments.
var full = flag.Bool("full", false, "run all fault tests in full length (about four minutes)")

// atOnce is how many tests run at the same time: they wait more than they work.
const atOnce = 6

func TestMain(m *testing.M) {
	flag.Parse()
	given := map[string]string{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = f.Value.String() })
	if _, ok := given["test.parallel"]; !ok {
		if err := flag.Set("test.parallel", strconv.Itoa(max(atOnce, runtime.GOMAXPROCS(0)))); err != nil {
			panic(err) // the flag is one of package testing
		}
	}
	code := m.Run()
	cluster.RemovePrograms()
	redistest.StopShared()
	printMeasurements()
	if *recording && code == 0 {
		everything := *full && (given["test.run"] == "" || given["test.run"] == ".")
		if err := recordAll(everything); err != nil {
			fmt.Fprintln(os.Stderr, "record what was measured:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// within is how long an execution may take over a fault with short leases, on a
// busy machine, unless a test says less.
const within = 60 * time.Second

// calm is the lease where no worker is lost: a busy machine stalls one for longer than a
// short lease, and what it ran would be run again, as it should.
const calm = 10 * time.Second
