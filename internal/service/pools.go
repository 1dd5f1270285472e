package service

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/reprise-engine/reprise/pkg/queue"
)

// parsePools reads a worker's list of pools, "default" or "gpu:2": with a number, that
// many jobs of the pool run at once. slots are those with a number.
func parsePools(list []string, concurrency int) (pools []string, slots map[string]int, err error) {
	slots = map[string]int{}
	for _, text := range list {
		name, number, limited := strings.Cut(strings.TrimSpace(text), ":")
		if name == "" {
			name = queue.DefaultPool
		}
		if limited {
			n, err := strconv.Atoi(number)
			if err != nil || n < 1 || n > concurrency {
				return nil, nil, fmt.Errorf("pool %q: want a name, or a name and a number of jobs from 1 to the worker's concurrency of %d, such as gpu:2", text, concurrency)
			}
			slots[name] = n
		}
		pools = append(pools, name)
	}
	return pools, slots, nil
}

// poolSlots is how many jobs of each pool a worker runs at once.
func poolSlots(pools []string, slots map[string]int, concurrency int) map[string]int {
	all := map[string]int{}
	for _, pool := range pools {
		all[pool] = concurrency
		if n := slots[pool]; n > 0 {
			all[pool] = n
		}
	}
	return all
}
