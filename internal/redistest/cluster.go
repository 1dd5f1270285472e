package redistest

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const clusterSlots = 16384

// Cluster is a Redis Cluster of masters without replicas on this machine.
type Cluster struct {
	Nodes []*Server
}

// StartCluster starts a cluster of n masters that own the slots evenly, and
// waits until every node says that the cluster is complete. It ends with the test.
func StartCluster(t testing.TB, n int) *Cluster {
	t.Helper()
	c := &Cluster{}
	for range n {
		bus, err := freePort()
		if err != nil {
			t.Fatal(err)
		}
		// The bus port is by default port+10000, which may not exist.
		c.Nodes = append(c.Nodes, Start(t, "--cluster-enabled", "yes", "--cluster-port", fmt.Sprint(bus),
			"--cluster-config-file", filepath.Join(t.TempDir(), "nodes.conf"), "--cluster-node-timeout", "5000"))
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for i, node := range c.Nodes {
		client := redis.NewClient(&redis.Options{Addr: node.Addr()})
		t.Cleanup(func() { _ = client.Close() })
		first, last := i*clusterSlots/n, (i+1)*clusterSlots/n-1
		if err := client.ClusterAddSlotsRange(ctx, first, last).Err(); err != nil {
			t.Fatalf("redistest: give slots to node %d: %v", i, err)
		}
		// Each node has its own epoch, else they argue about it at first.
		if err := client.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			t.Fatalf("redistest: set epoch of node %d: %v", i, err)
		}
		if i == 0 {
			continue
		}
		meet := []any{"CLUSTER", "MEET", "127.0.0.1", c.Nodes[0].port, c.Nodes[0].busPort()}
		if err := client.Do(ctx, meet...).Err(); err != nil {
			t.Fatalf("redistest: join node %d: %v", i, err)
		}
	}
	for _, node := range c.Nodes {
		client := redis.NewClient(&redis.Options{Addr: node.Addr()})
		t.Cleanup(func() { _ = client.Close() })
		for !complete(ctx, client, n) {
			select {
			case <-ctx.Done():
				t.Fatalf("redistest: cluster of %d nodes not complete within %s", n, startTimeout)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return c
}

// complete reports whether a node sees all slots served and all nodes met.
func complete(ctx context.Context, client *redis.Client, n int) bool {
	info, err := client.ClusterInfo(ctx).Result()
	return err == nil && strings.Contains(info, "cluster_state:ok") &&
		strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d\r", n)) &&
		strings.Contains(info, fmt.Sprintf("cluster_slots_assigned:%d\r", clusterSlots))
}

// URL lists the nodes' URLs, separated by commas.
func (c *Cluster) URL() string {
	urls := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		urls[i] = "redis://" + n.Addr()
	}
	return strings.Join(urls, ",")
}

// busPort is the port given with --cluster-port.
func (s *Server) busPort() string {
	for i, a := range s.args {
		if a == "--cluster-port" {
			return s.args[i+1]
		}
	}
	return ""
}
