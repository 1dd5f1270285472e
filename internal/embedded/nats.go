package embedded

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// ErrDirInUse is returned by StartNATS and StartRedis when another process has
// the directory open.
var ErrDirInUse = errors.New("embedded: directory is in use")

// startTimeout bounds how long a server may take to answer. Recovery of a
// large JetStream store is what takes time.
const startTimeout = 30 * time.Second

// NATSOptions are the options of StartNATS. The zero value is a server without
// authentication on a free loopback port.
type NATSOptions struct {
	// Host and Port to listen on; "" is 127.0.0.1 and 0 is any free port.
	Host string
	Port int
	// Username and Password, or Token, that clients must show.
	Username string
	Password string
	Token    string
	// NoJetStream leaves JetStream off: only for tests of that very fault.
	NoJetStream bool
	// MaxPayloadBytes of one message; 0 is the server's default of 1 MiB.
	MaxPayloadBytes int32
	// SyncAlways has every stored message synced to disk before it is
	// acknowledged. It costs a factor of five and more.
	SyncAlways bool
	// Logger gets the server's log, warnings and errors at their level and
	// notices at debug. nil silences it.
	Logger *zap.Logger
}

// NATS is a running server.
type NATS struct {
	// URL for clients, with the credentials in it when there are any.
	URL string
	// Server is the server itself, for tests that look inside.
	Server *server.Server

	stop sync.Once
	free func()
}

// StartNATS runs a NATS server in this process, with JetStream's files in dir.
// With dir "" they are in a temporary directory that Shutdown removes. It
// returns ErrDirInUse when another process has dir open.
func StartNATS(dir string, o NATSOptions) (*NATS, error) {
	free := func() {}
	if dir == "" {
		temporary, err := os.MkdirTemp("", "reprise-nats-")
		if err != nil {
			return nil, fmt.Errorf("create nats directory: %w", err)
		}
		dir, free = temporary, func() { _ = os.RemoveAll(temporary) }
	}
	unlock, err := lockDir(dir, "nats")
	if err != nil {
		free()
		return nil, err
	}
	n := &NATS{free: func() { unlock(); free() }}
	if err := n.start(dir, o); err != nil {
		n.Shutdown()
		return nil, err
	}
	return n, nil
}

func (n *NATS) start(dir string, o NATSOptions) error {
	opts := &server.Options{
		ServerName: "reprise-embedded", Host: o.Host, Port: o.Port,
		Username: o.Username, Password: o.Password, Authorization: o.Token,
		JetStream: !o.NoJetStream, StoreDir: dir, SyncAlways: o.SyncAlways,
		MaxPayload: o.MaxPayloadBytes,
		// The process's own signal handling and log stay untouched.
		NoSigs: true, DisableJetStreamBanner: true,
	}
	if opts.Host == "" {
		opts.Host = "127.0.0.1"
	}
	if opts.Port == 0 {
		opts.Port = server.RANDOM_PORT
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		return fmt.Errorf("start nats server: %w", err)
	}
	n.Server = srv
	logger := &zapLogger{log: zap.NewNop(), fatal: make(chan string, 1)}
	if o.Logger != nil {
		logger.log = o.Logger.Named("nats")
	}
	srv.SetLoggerV2(logger, false, false, false)
	srv.Start()
	if err := n.ready(logger); err != nil {
		return fmt.Errorf("start nats server on %s, directory %s: %w", srv.ClientURL(), dir, err)
	}
	if opts.JetStream && !srv.JetStreamEnabled() {
		return fmt.Errorf("start nats server: JetStream did not start in %s", dir)
	}
	n.URL = withUser(srv.ClientURL(), o)
	return nil
}

func (n *NATS) ready(logger *zapLogger) error {
	for deadline := time.Now().Add(startTimeout); ; {
		if n.Server.ReadyForConnections(50 * time.Millisecond) {
			return nil
		}
		select {
		case reason := <-logger.fatal:
			return errors.New(reason)
		default:
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not ready after %s", startTimeout)
		}
	}
}

func withUser(raw string, o NATSOptions) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	switch {
	case o.Token != "":
		u.User = url.User(o.Token)
	case o.Username != "":
		u.User = url.UserPassword(o.Username, o.Password)
	}
	return u.String()
}

// Shutdown stops the server and waits until its files are closed. It may be
// called more than once.
func (n *NATS) Shutdown() {
	n.stop.Do(func() {
		if n.Server != nil {
			n.Server.Shutdown()
			n.Server.WaitForShutdown()
		}
		n.free()
	})
}

// zapLogger hands the server's log lines to zap. The lines are sentences of
// the server's own making, so they travel as a field of a constant message.
type zapLogger struct {
	log   *zap.Logger
	fatal chan string // the first fatal line
}

func (l *zapLogger) write(level zapcore.Level, format string, v []any) {
	if entry := l.log.Check(level, "nats server"); entry != nil {
		entry.Write(zap.String("text", fmt.Sprintf(format, v...)))
	}
}

func (l *zapLogger) Noticef(format string, v ...any) { l.write(zap.DebugLevel, format, v) }
func (l *zapLogger) Warnf(format string, v ...any)   { l.write(zap.WarnLevel, format, v) }
func (l *zapLogger) Errorf(format string, v ...any)  { l.write(zap.ErrorLevel, format, v) }
func (l *zapLogger) Debugf(format string, v ...any)  { l.write(zap.DebugLevel, format, v) }
func (l *zapLogger) Tracef(format string, v ...any)  { l.write(zap.DebugLevel, format, v) }

// Fatalf does not end the process, which is not the server's to end: StartNATS
// returns the line as its error.
func (l *zapLogger) Fatalf(format string, v ...any) {
	l.write(zap.ErrorLevel, format, v)
	select {
	case l.fatal <- fmt.Sprintf(format, v...):
	default:
	}
}
