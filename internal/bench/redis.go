package bench

import (
	"bufio"
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisCPU is the CPU time the server, or all masters of a cluster, have used.
// Not every server tells (miniredis does not).
func redisCPU(ctx context.Context, client redis.UniversalClient) (used time.Duration, ok bool) {
	var mu sync.Mutex
	ok = true
	add := func(ctx context.Context, node redis.UniversalClient) error {
		info, err := node.Info(ctx, "cpu").Result()
		seconds, found := cpuSeconds(info)
		mu.Lock()
		defer mu.Unlock()
		ok = ok && err == nil && found
		used += time.Duration(seconds * float64(time.Second))
		return nil
	}
	if cluster, is := client.(*redis.ClusterClient); is {
		err := cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return add(ctx, node) })
		return used, ok && err == nil
	}
	_ = add(ctx, client)
	return used, ok
}

// cpuSeconds reads the answer to INFO cpu.
func cpuSeconds(info string) (seconds float64, ok bool) {
	for lines := bufio.NewScanner(strings.NewReader(info)); lines.Scan(); {
		name, value, _ := strings.Cut(strings.TrimSpace(lines.Text()), ":")
		if name != "used_cpu_sys" && name != "used_cpu_user" {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, false
		}
		seconds, ok = seconds+v, true
	}
	return seconds, ok
}
