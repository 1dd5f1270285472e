package cli

import (
	"os"

	"github.com/caarlos0/env/v11"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/config"
	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
)

// readSecretFiles puts the URLs that are given as files (REPRISE_NATS_URL_FILE,
// REPRISE_REDIS_URL_FILE) where the flags take them from.
func readSecretFiles() error {
	environment := env.ToMap(os.Environ())
	for _, variable := range []string{"REPRISE_NATS_URL", "REPRISE_REDIS_URL"} {
		value, err := config.Secret(variable, environment)
		if err != nil {
			return err
		}
		if value == environment[variable] {
			continue
		}
		if err := os.Setenv(variable, value); err != nil {
			return err
		}
		if err := os.Unsetenv(variable + "_FILE"); err != nil {
			return err
		}
	}
	return nil
}

// natsConfig is the configuration of a client's connection: the URL, and certificates and
// credentials from the same variables as a service's.
func natsConfig(url, name string) (queue.Config, error) {
	access, err := env.ParseAs[service.NATSAccess]()
	return access.Config(url, name, zap.NewNop()), err
}

// redisConfig is the same for Redis.
func redisConfig(url string) (state.Config, error) {
	access, err := env.ParseAs[service.RedisAccess]()
	if err != nil {
		return state.Config{}, err
	}
	tls, err := access.TLS(url)
	return state.Config{URL: url, TLS: tls, Log: zap.NewNop()}, err
}
