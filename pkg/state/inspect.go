package state

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Info describes the Redis behind a Store; of a Cluster, its masters together.
// What the server does not tell is zero.
type Info struct {
	Version string // of the oldest node
	Cluster bool
	Nodes   int
	// AppendOnly: all nodes keep an append-only file. Without one a restart loses
	// executions.
	AppendOnly bool
	// DefaultRestricted: the user "default" of a node may not write. Redis loads its append-only file
	// with his rights, and most versions drop the transactions in it that they do not allow, which all
	// commits are. It is false when Redis does not say.
	DefaultRestricted bool
	// MaxmemoryPolicy of a node that is not on noeviction, if there is one.
	MaxmemoryPolicy string
	// UsedMemory and Maxmemory in bytes, of the fullest node; Maxmemory 0 is no limit.
	UsedMemory, Maxmemory int64
	// ClockSkew is how far Redis' clock is ahead of ours (negative: behind), at worst, without
	// the network's way. It matters for the expiry only.
	ClockSkew time.Duration
	// RoundTrip is the time a small command took, at worst.
	RoundTrip time.Duration
}

// Inspect reads the settings that decide whether executions are safe. It needs
// INFO and TIME only, as managed servers refuse CONFIG, and may be refused ACL.
func (s *Store) Inspect(ctx context.Context) (Info, error) {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		info, err := inspectNode(ctx, s.client)
		return info, wrap(err, "inspect redis at %s", s.addr)
	}
	var mu sync.Mutex
	var all Info
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		info, err := inspectNode(ctx, node)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		all = worse(all, info)
		return nil
	})
	all.Cluster = true
	return all, wrap(err, "inspect redis at %s", s.addr)
}

func inspectNode(ctx context.Context, c redis.Cmdable) (Info, error) {
	before := time.Now()
	theirs, err := c.Time(ctx).Result()
	if err != nil {
		return Info{}, err
	}
	took := time.Since(before)
	info := Info{Nodes: 1, RoundTrip: took, ClockSkew: theirs.Sub(before.Add(took / 2))}
	text, err := c.Info(ctx).Result()
	if err != nil {
		return Info{}, err
	}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "redis_version":
			info.Version = value
		case "aof_enabled":
			info.AppendOnly = value == "1"
		case "maxmemory_policy":
			info.MaxmemoryPolicy = value
		case "used_memory":
			info.UsedMemory, _ = strconv.ParseInt(value, 10, 64)
		case "maxmemory":
			info.Maxmemory, _ = strconv.ParseInt(value, 10, 64)
		case "cluster_enabled":
			info.Cluster = value == "1"
		}
	}
	info.DefaultRestricted = restricted(ctx, c)
	return info, nil
}

// restricted reports whether the user "default" is known to lack rights, be he on or off.
func restricted(ctx context.Context, c redis.Cmdable) bool {
	allowed, err := c.ACLDryRun(ctx, "default", "set", "reprise:any", "x").Result()
	return err == nil && allowed != "OK"
}

// worse joins what is known of several nodes.
func worse(a, b Info) Info {
	if a.Nodes == 0 {
		return b
	}
	a.Nodes += b.Nodes
	a.AppendOnly = a.AppendOnly && b.AppendOnly
	a.DefaultRestricted = a.DefaultRestricted || b.DefaultRestricted
	if b.Version < a.Version {
		a.Version = b.Version
	}
	if a.MaxmemoryPolicy == "noeviction" {
		a.MaxmemoryPolicy = b.MaxmemoryPolicy
	}
	if fullness(b) > fullness(a) {
		a.UsedMemory, a.Maxmemory = b.UsedMemory, b.Maxmemory
	}
	if b.ClockSkew.Abs() > a.ClockSkew.Abs() {
		a.ClockSkew = b.ClockSkew
	}
	a.RoundTrip = max(a.RoundTrip, b.RoundTrip)
	return a
}

func fullness(i Info) float64 {
	if i.Maxmemory == 0 {
		return 0
	}
	return float64(i.UsedMemory) / float64(i.Maxmemory)
}
