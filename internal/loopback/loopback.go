// Package loopback opens the servers of programs that take all a server has, or
// break it, and refuses those that others may be using.
package loopback

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Check refuses addresses that are not on this machine: a list of URLs, or of
// host:port, separated by commas. name is what the error calls the servers.
func Check(name, list string) error {
	if list == "" {
		return nil
	}
	for one := range strings.SplitSeq(list, ",") {
		one = strings.TrimSpace(one)
		if !strings.Contains(one, "://") {
			one = "tcp://" + one
		}
		u, err := url.Parse(one)
		if err != nil { // not shown: it may hold a password
			return fmt.Errorf("%s url cannot be read; it looks like %s://127.0.0.1:port", name, strings.ToLower(name))
		}
		host := u.Hostname()
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return fmt.Errorf("%s server at %s: this takes all a server has, or breaks it, so it runs on loopback addresses only", name, host)
		}
	}
	return nil
}

// OpenRedis connects to one server or to a cluster.
func OpenRedis(ctx context.Context, list string) (redis.UniversalClient, error) {
	var options *redis.UniversalOptions
	for one := range strings.SplitSeq(list, ",") {
		one = strings.TrimSpace(one)
		if !strings.Contains(one, "://") {
			one = "redis://" + one
		}
		o, err := redis.ParseURL(one)
		if err != nil { // not shown: it may hold a password
			return nil, errors.New("redis url cannot be read; it looks like redis://127.0.0.1:6379/0")
		}
		if options == nil {
			options = &redis.UniversalOptions{Username: o.Username, Password: o.Password, DB: o.DB, TLSConfig: o.TLSConfig}
		}
		options.Addrs = append(options.Addrs, o.Addr)
	}
	options.DisableIdentity = true
	client := redis.NewUniversalClient(options)
	info, err := client.Info(ctx, "cluster").Result()
	if err == nil && len(options.Addrs) == 1 && strings.Contains(info, "cluster_enabled:1") {
		_ = client.Close()
		options.IsClusterMode = true
		client = redis.NewUniversalClient(options)
	}
	if err := client.Ping(ctx).Err(); err != nil {
		_ = client.Close()
		return nil, fmt.Errorf("connect to redis: %w", err)
	}
	return client, nil
}
