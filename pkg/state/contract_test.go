package state_test

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"

	"github.com/reprise-engine/reprise/internal/redistest"
	"github.com/reprise-engine/reprise/pkg/state"
	"github.com/reprise-engine/reprise/pkg/state/statetest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

var prefixes atomic.Int64

// open opens a store with keys of its own.
func open(t testing.TB, url string, change ...func(*state.Config)) *state.Store {
	t.Helper()
	config := state.Config{
		URL: url, Prefix: fmt.Sprintf("%s.%d", strings.NewReplacer("/", ".", "#", ".", "_", "-").Replace(t.Name()), prefixes.Add(1)),
		MemoryLimit: statetest.MemoryLimit, TableLimits: statetest.TableLimits, Log: zaptest.NewLogger(t),
	}
	for _, f := range change {
		f(&config)
	}
	s, err := state.Open(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestContractOnRedis(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	statetest.Run(t, func(t *testing.T) statetest.Store { return open(t, srv.URL()) })
}

// What a store has set itself it finds without reading all shards.
func TestContractWithoutLookingAtAll(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	statetest.Run(t, func(t *testing.T) statetest.Store {
		return open(t, srv.URL(), func(c *state.Config) { c.LookEvery = time.Hour })
	})
}

func TestContractOnMiniredis(t *testing.T) {
	t.Parallel()
	mini := miniredis.RunT(t)
	statetest.Run(t, func(t *testing.T) statetest.Store { return open(t, "redis://"+mini.Addr()) })
}

func TestContractOnCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	statetest.Run(t, func(t *testing.T) statetest.Store { return open(t, cluster.URL()) })
}
