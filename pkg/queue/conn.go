package queue

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
)

// Config of a connection. Only URL is needed.
type Config struct {
	// URL of a server, or of several of a cluster with commas between them.
	URL string
	// Name is shown in the server's list of connections.
	Name string
	// CredentialsFile is a .creds file, NKeyFile a file with an nkey seed. User and
	// Password, or Token, may also be part of URL.
	CredentialsFile string
	NKeyFile        string
	User, Password  string
	Token           string
	// CAFile, CertFile and KeyFile are PEM files for TLS; "" takes the system's
	// authorities and no client certificate.
	CAFile, CertFile, KeyFile string
	// InboxPrefix begins the subjects to which answers and jobs are sent, so that a server's
	// permissions can keep them from others; "" is _INBOX.
	InboxPrefix string
	// BlobThreshold is the size in bytes over which a payload goes through the
	// object store; 0 is three quarters of the server's max_payload.
	BlobThreshold int
	// MaxBlobBytes bounds what is stored and read; 0 is 256 MiB.
	MaxBlobBytes int64
	// RequestTimeout bounds one request to a coordinator or to the server when the
	// caller's context does not; 0 is 10 s.
	RequestTimeout time.Duration
	// ConnectTimeout of each attempt to connect; 0 is 5 s.
	ConnectTimeout time.Duration
	// Log gets connects and disconnects; nil silences them.
	Log *zap.Logger
}

const (
	defaultMaxBlobBytes = 256 << 20
	// maxPublishPending bounds the jobs whose acknowledgement is awaited.
	maxPublishPending = 16384
	// publishTimeout ends the wait for one; a lost one would else be awaited forever.
	publishTimeout = 10 * time.Second
	// reconnectBufferBytes of small messages (acks, replies) survive a short loss
	// of the server.
	reconnectBufferBytes = 16 << 20
)

// Conn is a connection to NATS with the operations of coordinators, workers and
// clients. Goroutines may share it. Once connected it reconnects for ever.
type Conn struct {
	config Config
	nc     *nats.Conn
	js     jetstream.JetStream
	log    *zap.Logger
	stats  counters
	blobs  atomic.Pointer[jetstream.ObjectStore]

	mu          sync.Mutex
	streams     *Streams      // what EnsureStreams was last asked for
	reconnected chan struct{} // closed and replaced at each reconnect
	downSince   time.Time     // zero while connected
	connectedAt time.Time     // of the present or last connection
	background  sync.WaitGroup
	// consumersSince is when the youngest consumer of jobs was created, and recreated
	// whether there was one before; see ConnectedAt.
	consumersSince time.Time
	recreated      bool
	closing        bool
}

// Connect connects to a server and checks that it has JetStream. It does not
// wait for a server that is not there: the error is ErrUnavailable,
// ErrCredentials or ErrNoJetStream, names the server and never holds a secret.
func Connect(ctx context.Context, config Config) (*Conn, error) {
	c := &Conn{config: config, log: config.Log, reconnected: make(chan struct{})}
	if c.log == nil {
		c.log = zap.NewNop()
	}
	c.log = c.log.Named("nats")
	if c.config.RequestTimeout <= 0 {
		c.config.RequestTimeout = 10 * time.Second
	}
	if c.config.MaxBlobBytes <= 0 {
		c.config.MaxBlobBytes = defaultMaxBlobBytes
	}
	if config.URL == "" {
		return nil, errors.New("nats url is empty: give one such as nats://127.0.0.1:4222")
	}
	where := redact(config.URL)
	nc, err := nats.Connect(config.URL, c.options()...)
	if err != nil {
		return nil, connectError(where, err, config)
	}
	c.nc, c.connectedAt = nc, time.Now()
	c.js, err = jetstream.New(nc, jetstream.WithDefaultTimeout(c.config.RequestTimeout),
		jetstream.WithPublishAsyncMaxPending(maxPublishPending), jetstream.WithPublishAsyncTimeout(publishTimeout))
	if err == nil {
		err = c.checkJetStream(ctx, where)
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	return c, nil
}

func (c *Conn) options() []nats.Option {
	timeout := c.config.ConnectTimeout
	if timeout <= 0 {
		timeout = 5 * time.Second
	}
	options := []nats.Option{
		nats.Name(c.config.Name), nats.Timeout(timeout),
		nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectJitter(250*time.Millisecond, 500*time.Millisecond),
		nats.ReconnectBufSize(reconnectBufferBytes),
		// A server that is reloaded with other credentials and back must not cost us
		// the connection for good.
		nats.IgnoreAuthErrorAbort(),
		// A server that hangs is noticed in five to seven and a half seconds.
		nats.PingInterval(2500 * time.Millisecond), nats.MaxPingsOutstanding(2),
		nats.DisconnectErrHandler(c.onDisconnect), nats.ReconnectHandler(c.onReconnect),
		nats.ErrorHandler(c.onError),
	}
	if c.config.CredentialsFile != "" {
		options = append(options, nats.UserCredentials(c.config.CredentialsFile))
	}
	if c.config.NKeyFile != "" {
		options = append(options, func(o *nats.Options) error {
			nkey, err := nats.NkeyOptionFromSeed(c.config.NKeyFile)
			if err != nil {
				return err
			}
			return nkey(o)
		})
	}
	if c.config.User != "" {
		options = append(options, nats.UserInfo(c.config.User, c.config.Password))
	}
	if c.config.Token != "" {
		options = append(options, nats.Token(c.config.Token))
	}
	if c.config.InboxPrefix != "" {
		options = append(options, nats.CustomInboxPrefix(c.config.InboxPrefix))
	}
	if c.config.CAFile != "" {
		options = append(options, nats.RootCAs(c.config.CAFile))
	}
	if c.config.CertFile != "" {
		options = append(options, nats.ClientCert(c.config.CertFile, c.config.KeyFile))
	}
	return options
}

func (c *Conn) checkJetStream(ctx context.Context, where string) error {
	ctx, cancel := context.WithTimeout(ctx, c.config.RequestTimeout)
	defer cancel()
	_, err := c.js.AccountInfo(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("%w: %s runs without it: start nats-server with -js, or put a jetstream block into its configuration", ErrNoJetStream, where)
	case errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("%w: the account at %s has none: enable jetstream for it", ErrNoJetStream, where)
	}
	return fmt.Errorf("ask %s for JetStream: %w", where, classify(err))
}

func connectError(where string, err error, config Config) error {
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked),
		errors.Is(err, nats.ErrAccountAuthExpired), strings.Contains(strings.ToLower(err.Error()), "authorization violation"):
		return fmt.Errorf("%w: %s: check user and password, token or credentials file", ErrCredentials, where)
	}
	text := err.Error()
	for _, secret := range append(urlSecrets(config.URL), config.Password, config.Token) {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	return fmt.Errorf("%w: connect to %s: %s", ErrUnavailable, where, text)
}

// redact removes user, password and token from a list of URLs.
func redact(list string) string {
	var out []string
	for one := range strings.SplitSeq(list, ",") {
		one = strings.TrimSpace(one)
		if at := strings.LastIndex(one, "@"); at >= 0 {
			scheme, _, found := strings.Cut(one[:at], "://")
			if one = one[at+1:]; found {
				one = scheme + "://" + one
			}
		}
		out = append(out, one)
	}
	return strings.Join(out, ",")
}

// urlSecrets lists the passwords and tokens in a list of URLs, also of those that
// cannot be parsed.
func urlSecrets(list string) []string {
	var secrets []string
	for one := range strings.SplitSeq(list, ",") {
		at := strings.LastIndex(one, "@")
		if at < 0 {
			continue
		}
		user := strings.TrimSpace(one[:at])
		if _, rest, found := strings.Cut(user, "://"); found {
			user = rest
		}
		if _, password, found := strings.Cut(user, ":"); found {
			user = password
		}
		secrets = append(secrets, user)
		if plain, err := url.PathUnescape(user); err == nil {
			secrets = append(secrets, plain)
		}
	}
	return secrets
}

func (c *Conn) onDisconnect(_ *nats.Conn, err error) {
	c.mu.Lock()
	closing := c.closing
	if c.downSince.IsZero() {
		c.downSince = time.Now()
	}
	c.mu.Unlock()
	if !closing {
		c.log.Warn("nats connection lost, reconnecting", zap.Error(err))
	}
}

func (c *Conn) onReconnect(nc *nats.Conn) {
	c.stats.reconnects.Add(1)
	c.mu.Lock()
	c.downSince = time.Time{}
	c.connectedAt = time.Now()
	close(c.reconnected)
	c.reconnected = make(chan struct{})
	c.mu.Unlock()
	c.log.Info("nats connection restored", zap.String("server", nc.ConnectedUrlRedacted()))
}

func (c *Conn) onError(_ *nats.Conn, sub *nats.Subscription, err error) {
	fields := []zap.Field{zap.Error(err)}
	if sub != nil {
		fields = append(fields, zap.String("subject", sub.Subject))
	}
	c.log.Warn("nats reports an error", fields...)
}

// reconnects returns a channel that is closed at the next reconnect.
func (c *Conn) reconnects() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reconnected
}

// healthyWithin bounds the round trip of Healthy: less than what asks for it waits.
const healthyWithin = 1500 * time.Millisecond

// Healthy returns nil when a server answers. It takes one round trip, of 1.5 s at most:
// that a connection is there says nothing of a network that swallows everything, or of a server that
// hangs, until pings are missed several seconds later.
func (c *Conn) Healthy() error {
	if c.nc.IsConnected() {
		err := c.nc.FlushTimeout(healthyWithin)
		if err == nil {
			return nil
		}
		if c.nc.IsConnected() {
			return fmt.Errorf("%w: no answer from %s in %s", ErrUnavailable, redact(c.config.URL), healthyWithin)
		}
	}
	if c.nc.IsClosed() {
		return ErrClosed
	}
	c.mu.Lock()
	since := c.downSince
	c.mu.Unlock()
	if since.IsZero() {
		return ErrUnavailable
	}
	return fmt.Errorf("%w: no connection to %s for %s", ErrUnavailable, redact(c.config.URL), time.Since(since).Round(time.Millisecond))
}

// Flush waits until the server has taken everything sent so far.
func (c *Conn) Flush(ctx context.Context) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	return classify(c.nc.FlushWithContext(ctx))
}

// Close flushes what is buffered, for a moment, and closes the connection. What
// was started on it ends. A second call is harmless.
func (c *Conn) Close() {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.background.Wait()
	if c.nc.IsConnected() {
		_ = c.nc.FlushTimeout(2 * time.Second)
	}
	c.nc.Close()
}

// bounded gives a context its deadline when it has none.
func (c *Conn) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.config.RequestTimeout)
}

// inBackground runs f unless the connection is being closed; Close waits for it.
func (c *Conn) inBackground(f func(ctx context.Context)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return
	}
	c.background.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), c.config.RequestTimeout)
		defer cancel()
		f(ctx)
	})
}

// subscribe calls handle for the messages on a subject, one after the other. stop
// ends it after the messages that have arrived are handled.
func (c *Conn) subscribe(subject, group string, handle func(*nats.Msg)) (stop func(), err error) {
	var sub *nats.Subscription
	if group == "" {
		sub, err = c.nc.Subscribe(subject, handle)
	} else {
		sub, err = c.nc.QueueSubscribe(subject, group, handle)
	}
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", subject, classify(err))
	}
	// The default limits drop messages of a burst that we can well hold.
	_ = sub.SetPendingLimits(-1, -1)
	c.settle()
	return func() { c.drain(sub) }, nil
}

// settle waits until the server knows our subscriptions, so that a request that
// another process sends after we returned is served. Without a connection it
// does not: they are made when there is one.
func (c *Conn) settle() {
	if c.nc.IsConnected() {
		_ = c.nc.FlushTimeout(2 * time.Second)
	}
}

// drainTimeout bounds the wait for the messages under way to a subscription.
const drainTimeout = 2 * time.Second

// drain ends a subscription and waits until what has arrived is handled.
func (c *Conn) drain(sub *nats.Subscription) {
	closed := make(chan struct{})
	sub.SetClosedHandler(func(string) { close(closed) })
	if !c.nc.IsConnected() || sub.Drain() != nil {
		_ = sub.Unsubscribe()
		return
	}
	select {
	case <-closed:
	case <-time.After(drainTimeout):
		_ = sub.Unsubscribe()
	}
}
