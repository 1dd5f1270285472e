package memstore_test

import (
	"testing"

	"github.com/reprise-engine/reprise/internal/simulation/memstore"
	"github.com/reprise-engine/reprise/pkg/state/statetest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	statetest.Run(t, func(*testing.T) statetest.Store {
		return memstore.New(memstore.Config{MemoryLimit: statetest.MemoryLimit, TableLimits: statetest.TableLimits})
	})
}
