package state

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/table"
)

// Config of a Store. Only URL is required.
type Config struct {
	// URL is redis://user:password@host:port/db, or rediss:// for TLS. Several
	// addresses of a Redis Cluster are separated by commas; user and password are
	// those of the first. One address of a Cluster is enough, it is recognised.
	URL string
	// Prefix of all keys, default "reprise". Letters, digits, "-", "_", "." and ":".
	Prefix string
	// Retention is how long finished executions are kept, default 24 hours.
	Retention time.Duration
	// MemoryExpiry removes a chat memory that long after its last message; 0 keeps it.
	MemoryExpiry time.Duration
	// MemoryLimit is the number of messages a chat memory keeps, default 1000.
	MemoryLimit int
	// TableLimits bound each data table.
	TableLimits table.Limits
	// LookEvery is how often all shards are read for timers and sweeps that other processes have set;
	// in between, ClaimTimers and ClaimStale read those in which something is due as far as the
	// Store knows. 0 reads all of them at every call.
	LookEvery time.Duration
	// PoolSize is the number of connections, default 10 per CPU.
	PoolSize int
	// DialTimeout (default 2 s), ReadTimeout and WriteTimeout (default 3 s) of one attempt, the latter
	// counted from when something last moved. A call is tried twice.
	DialTimeout, ReadTimeout, WriteTimeout time.Duration
	// TLS replaces the TLS settings of a rediss:// URL.
	TLS *tls.Config
	// Log may be nil.
	Log *zap.Logger
}

// withDefaults fills what was left open and refuses what cannot work.
func (c Config) withDefaults() (Config, error) {
	if c.URL == "" {
		return c, errors.New("state: no redis URL is configured")
	}
	if c.Prefix == "" {
		c.Prefix = "reprise"
	}
	if i := strings.IndexFunc(c.Prefix, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:", r))
	}); i >= 0 {
		return c, fmt.Errorf("state: prefix %q: only letters, digits, \"-\", \"_\", \".\" and \":\" are allowed", c.Prefix)
	}
	if c.Retention < 0 || c.MemoryExpiry < 0 || c.MemoryLimit < 0 || c.LookEvery < 0 {
		return c, errors.New("state: retention, memory expiry, memory limit and LookEvery must not be negative")
	}
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&c.Retention, 24*time.Hour)
	def(&c.DialTimeout, 2*time.Second)
	def(&c.ReadTimeout, 3*time.Second)
	def(&c.WriteTimeout, 3*time.Second)
	if c.Retention < time.Millisecond {
		return c, fmt.Errorf("state: retention %s: must be at least 1ms", c.Retention)
	}
	if c.MemoryLimit == 0 {
		c.MemoryLimit = 1000
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	return c, nil
}

// Store keeps executions in Redis. Goroutines may share it.
type Store struct {
	client redis.UniversalClient
	config Config
	prefix string
	keys   *[Shards]shardKeys
	log    *zap.Logger
	addr   string // for errors
	count  counters
	turn   atomic.Uint32 // shard to begin claims with
	timers *dues         // what is known of when timers are due
	sweeps *dues         // and of when executions are to be looked at
	known  knownTables
}

var quiet sync.Once

// Open connects to Redis and loads the scripts. Errors: ErrUnavailable with
// the address, ErrCredentials, or what is wrong with the configuration.
func Open(ctx context.Context, config Config) (*Store, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	options, err := parseURL(config.URL)
	if err != nil {
		return nil, err
	}
	// The library prints connection errors to stderr; they all come back from the
	// calls too, and are logged by those who handle them.
	quiet.Do(logging.Disable)

	s := &Store{
		config: config, prefix: config.Prefix, keys: newShardKeys(config.Prefix),
		log: config.Log.Named("state"), addr: strings.Join(options.Addrs, ","),
		timers: newDues(), sweeps: newDues(),
	}
	options.PoolSize = config.PoolSize
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout = config.DialTimeout, config.ReadTimeout, config.WriteTimeout
	options.ContextTimeoutEnabled = true
	options.MaxRetries, options.DialerRetries = 1, 1 // a dead Redis is an error within seconds
	options.ConnMaxIdleTime = 5 * time.Minute
	options.DisableIdentity = true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	if config.TLS != nil {
		options.TLSConfig = config.TLS
	}
	options.Dialer = dialer(options)
	if err := s.connect(ctx, options); err != nil {
		return nil, wrap(err, "connect to redis at %s", s.addr)
	}
	return s, nil
}

// connect opens the client that fits the server: a single address may belong
// to a Cluster, whose keys live elsewhere.
func (s *Store) connect(ctx context.Context, options *redis.UniversalOptions) error {
	s.client = redis.NewUniversalClient(options)
	err := s.client.Ping(ctx).Err()
	if err == nil && !options.IsClusterMode && len(options.Addrs) == 1 {
		if info, e := s.client.Info(ctx, "cluster").Result(); e == nil && strings.Contains(info, "cluster_enabled:1") {
			_ = s.client.Close()
			options.IsClusterMode = true
			return s.connect(ctx, options)
		}
	}
	if err == nil {
		s.client.AddHook(&s.count)
		err = s.loadScripts(ctx)
	}
	if err != nil {
		_ = s.client.Close()
	}
	return err
}

// parseURL reads one or several addresses. Its errors never show the URL: it
// holds the password, and a wrongly written one may appear in any part.
func parseURL(list string) (*redis.UniversalOptions, error) {
	var out *redis.UniversalOptions
	for _, text := range strings.Split(list, ",") {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		if !strings.Contains(text, "://") {
			text = "redis://" + text
		}
		o, err := redis.ParseURL(text)
		if err != nil {
			return nil, errors.New("state: the redis URL cannot be read; it looks like redis://user:password@host:6379/0 " +
				"(rediss:// for TLS), and special characters of a password are percent-encoded")
		}
		if out == nil {
			out = &redis.UniversalOptions{Username: o.Username, Password: o.Password, DB: o.DB, TLSConfig: o.TLSConfig}
			if o.Network == "unix" {
				return nil, errors.New("state: unix sockets are not supported; use redis://host:port")
			}
		}
		out.Addrs = append(out.Addrs, o.Addr)
	}
	if out == nil {
		return nil, errors.New("state: no redis URL is configured")
	}
	if len(out.Addrs) > 1 && out.DB != 0 {
		return nil, errors.New("state: a redis cluster has only database 0")
	}
	return out, nil
}

// Retention is how long finished executions are kept.
func (s *Store) Retention() time.Duration { return s.config.Retention }

// Ping reports whether Redis answers.
func (s *Store) Ping(ctx context.Context) error {
	return wrap(s.client.Ping(ctx).Err(), "ping redis at %s", s.addr)
}

// Close closes the connections. Calls in flight fail.
func (s *Store) Close() error { return s.client.Close() }
