package service

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/queue"
)

// NATSAccess says how a process proves to NATS who it is, besides what the URL says, and
// how it knows the server. Its zero value is the URL alone.
type NATSAccess struct {
	NATSCAFile    string `env:"REPRISE_NATS_CA_FILE" help:"PEM file of the authorities that NATS's certificate may come from; empty is those of the system"`
	NATSCertFile  string `env:"REPRISE_NATS_CERT_FILE" help:"PEM file of the client certificate for NATS, with REPRISE_NATS_CERT_KEY_FILE"`
	NATSKeyFile   string `env:"REPRISE_NATS_CERT_KEY_FILE" help:"PEM file of the client certificate's key"`
	NATSCredsFile string `env:"REPRISE_NATS_CREDS_FILE" help:"NATS credentials (.creds) with JWT and seed"`
	NATSNKeyFile  string `env:"REPRISE_NATS_NKEY_FILE" help:"file of an nkey's seed for NATS"`
	NATSInbox     string `env:"REPRISE_NATS_INBOX_PREFIX" help:"beginning of the subjects to which NATS sends this process answers and jobs, such as _INBOX.worker; empty is _INBOX"`
}

// Config is a connection's configuration.
func (a NATSAccess) Config(url, name string, log *zap.Logger) queue.Config {
	return queue.Config{
		URL: url, Name: name, Log: log, CredentialsFile: a.NATSCredsFile, NKeyFile: a.NATSNKeyFile,
		CAFile: a.NATSCAFile, CertFile: a.NATSCertFile, KeyFile: a.NATSKeyFile,
		InboxPrefix: a.NATSInbox,
	}
}

// RedisAccess is the same for Redis, whose URL holds user and password.
type RedisAccess struct {
	RedisCAFile   string `env:"REPRISE_REDIS_CA_FILE" help:"PEM file of the authorities that Redis's certificate may come from, for a rediss:// URL; empty is those of the system"`
	RedisCertFile string `env:"REPRISE_REDIS_CERT_FILE" help:"PEM file of the client certificate for Redis, with REPRISE_REDIS_CERT_KEY_FILE"`
	RedisKeyFile  string `env:"REPRISE_REDIS_CERT_KEY_FILE" help:"PEM file of the client certificate's key"`
}

// TLS is the TLS configuration for a URL; nil when there is nothing beyond what the
// URL says.
func (a RedisAccess) TLS(url string) (*tls.Config, error) {
	if a == (RedisAccess{}) {
		return nil, nil
	}
	if !strings.HasPrefix(strings.TrimSpace(url), "rediss://") {
		// Certificates that are silently not used are a trap.
		return nil, errors.New("certificate files are given for a Redis URL without TLS: it must begin with rediss://")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.RedisCAFile != "" {
		pem, err := os.ReadFile(a.RedisCAFile)
		if err != nil {
			return nil, fmt.Errorf("read REPRISE_REDIS_CA_FILE: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read REPRISE_REDIS_CA_FILE: %s holds no certificate in PEM form", a.RedisCAFile)
		}
	}
	if a.RedisCertFile != "" || a.RedisKeyFile != "" {
		pair, err := tls.LoadX509KeyPair(a.RedisCertFile, a.RedisKeyFile)
		if err != nil {
			return nil, fmt.Errorf("read REPRISE_REDIS_CERT_FILE and REPRISE_REDIS_CERT_KEY_FILE: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
