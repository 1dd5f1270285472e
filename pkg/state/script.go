package state

import (
	"context"
	"crypto/sha1" //nolint:gosec // Redis names scripts by their SHA-1
	"encoding/hex"
	"errors"

	"github.com/redis/go-redis/v9"
)

// script is a Lua script, named by its digest.
type script struct {
	source string
	sha    string
}

// scripts are all scripts of the package, filled by newScript when the
// package's variables are initialised and constant from then on.
var scripts []*script

func newScript(source string) *script {
	sum := sha1.Sum([]byte(source)) //nolint:gosec // see above
	sc := &script{source: source, sha: hex.EncodeToString(sum[:])}
	scripts = append(scripts, sc)
	return sc
}

// call makes the command of a script whose first key is keys[0].
func (sc *script) call(ctx context.Context, keys []string, args []any) *redis.Cmd {
	all := make([]any, 0, 3+len(keys)+len(args))
	all = append(all, "evalsha", sc.sha, len(keys))
	for _, k := range keys {
		all = append(all, k)
	}
	cmd := redis.NewCmd(ctx, append(all, args...)...)
	cmd.SetFirstKeyPos(3)
	return cmd
}

// loadScripts makes the server (each master of a Cluster) know all scripts.
func (s *Store) loadScripts(ctx context.Context) error {
	load := func(ctx context.Context, client redis.Pipeliner) error {
		for _, sc := range scripts {
			client.ScriptLoad(ctx, sc.source)
		}
		_, err := client.Exec(ctx)
		return err
	}
	if cluster, ok := s.client.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			return load(ctx, node.Pipeline())
		})
	}
	return load(ctx, s.client.Pipeline())
}

// run sends the commands in one round trip. Each command keeps its own reply
// or error, which is what callers look at. A server that lost its scripts (a
// restart, SCRIPT FLUSH, a failover) refuses each call by itself, so the refused
// ones, and only those, are sent again once the scripts are loaded.
func (s *Store) run(ctx context.Context, calls []*redis.Cmd) {
	pending := calls
	for attempt := 0; len(pending) > 0; attempt++ {
		pipe := s.client.Pipeline()
		for _, c := range pending {
			c.SetErr(nil)
			_ = pipe.Process(ctx, c) // queues
		}
		_, _ = pipe.Exec(ctx) // the first error, which its command holds too

		var forgotten []*redis.Cmd
		for _, c := range pending {
			if redis.HasErrorPrefix(c.Err(), "NOSCRIPT") {
				forgotten = append(forgotten, c)
			}
		}
		if len(forgotten) == 0 || attempt == 2 {
			return
		}
		s.count.reloads.Add(1)
		if err := s.loadScripts(ctx); err != nil {
			for _, c := range forgotten {
				c.SetErr(err)
			}
			return
		}
		pending = forgotten
	}
}

// errNil reports whether err only says that there is no such key.
func errNil(err error) bool { return errors.Is(err, redis.Nil) }
