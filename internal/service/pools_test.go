package service

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParsePools(t *testing.T) {
	pools, slots, err := parsePools([]string{"default", " gpu:2", "slow:8"}, 8)
	require.NoError(t, err)
	require.Equal(t, []string{"default", "gpu", "slow"}, pools)
	require.Equal(t, map[string]int{"gpu": 2, "slow": 8}, slots)
	require.Equal(t, map[string]int{"default": 8, "gpu": 2, "slow": 8}, poolSlots(pools, slots, 8))
	for _, bad := range []string{"gpu:0", "gpu:9", "gpu:x", "gpu:"} {
		_, _, err := parsePools([]string{bad}, 8)
		require.ErrorContains(t, err, bad)
		require.ErrorContains(t, err, "gpu:2")
	}
}
