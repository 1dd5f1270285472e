package config_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/config"
	"github.com/reprise-engine/reprise/internal/coordinator"
	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/pkg/queue"
)

type settings struct {
	URL      string        `env:"REPRISE_TEST_URL" envDefault:"nats://here" help:"server"`
	Timeout  time.Duration `env:"REPRISE_TEST_TIMEOUT" envDefault:"5s" help:"time"`
	Key      string        `env:"REPRISE_TEST_KEY" help:"key"`
	Count    int           `env:"REPRISE_TEST_COUNT" help:"number"`
	Pools    []string      `env:"REPRISE_TEST_POOLS" envDefault:"default" help:"pools"`
	Internal func()        `env:"-"`
}

// Embedded is what settings have in common.
type Embedded = settings

func TestFlagsWinOverTheEnvironment(t *testing.T) {
	t.Setenv("REPRISE_TEST_URL", "nats://user:secret@there")
	t.Setenv("REPRISE_TEST_POOLS", "a,b")
	t.Setenv("REPRISE_TEST_KEY", "secret")
	var s settings
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	require.NoError(t, config.Bind(flags, &s))
	require.NoError(t, flags.Parse([]string{"--test-timeout", "9s"}))
	require.Equal(t, "nats://user:secret@there", s.URL)
	require.Equal(t, 9*time.Second, s.Timeout)
	require.Equal(t, []string{"a", "b"}, s.Pools)
	require.NotContains(t, flags.FlagUsages(), "secret", "the help must not show a password of the environment")
	require.Contains(t, flags.FlagUsages(), "REPRISE_TEST_COUNT")
	require.Error(t, flags.Parse([]string{"--unknown"}))
}

func TestBadValueIsRefused(t *testing.T) {
	t.Setenv("REPRISE_TEST_TIMEOUT", "soon")
	require.ErrorContains(t, config.Bind(pflag.NewFlagSet("test", pflag.ContinueOnError), &settings{}), "read environment")
}

func TestDefaultsAreForWhatIsZero(t *testing.T) {
	t.Setenv("REPRISE_TEST_URL", "nats://there")
	s := settings{Count: 7, Pools: []string{"a"}}
	require.NoError(t, config.Default(&s))
	require.Equal(t, settings{URL: "nats://here", Timeout: 5 * time.Second, Count: 7, Pools: []string{"a"}}, s)
}

// The packages that work without settings have the same defaults.
func TestDefaultsAreTheSameEverywhere(t *testing.T) {
	var c service.Coordinator
	require.NoError(t, config.Default(&c))
	require.Equal(t, coordinator.DefaultSweepAfter, c.SweepAfter)
	var w service.Worker
	require.NoError(t, config.Default(&w))
	require.Equal(t, queue.DefaultLease, w.Lease)
}

func TestSecretsAreReadFromFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "url")
	require.NoError(t, os.WriteFile(file, []byte("nats://user:secret@there\n"), 0o600))
	t.Setenv("REPRISE_TEST_URL_FILE", file)
	var s struct{ Embedded }
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	require.NoError(t, config.Bind(flags, &s))
	require.Equal(t, "nats://user:secret@there", s.URL)
	require.NotContains(t, flags.FlagUsages(), "secret")

	bind := func() error { return config.Bind(pflag.NewFlagSet("test", pflag.ContinueOnError), &s) }
	t.Setenv("REPRISE_TEST_URL", "nats://here")
	require.ErrorContains(t, bind(), "REPRISE_TEST_URL and REPRISE_TEST_URL_FILE are both set")
	t.Setenv("REPRISE_TEST_URL", "")
	t.Setenv("REPRISE_TEST_URL_FILE", file+"-missing")
	require.ErrorContains(t, bind(), "read REPRISE_TEST_URL_FILE")
	require.NoError(t, os.WriteFile(file, []byte(" \n"), 0o600))
	t.Setenv("REPRISE_TEST_URL_FILE", file)
	require.ErrorContains(t, bind(), "is empty")
	t.Setenv("REPRISE_TEST_URL_FILE", "")
	t.Setenv("REPRISE_TEST_COUNT_FILE", file)
	require.NoError(t, bind(), "a number is no secret")
}

// The table in the README names every setting, and no other.
func TestReadmeListsAllSettings(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(REPRISE_[A-Z_]+)`").FindAllStringSubmatch(string(readme), -1) {
		listed[m[1]] = true
	}
	known := map[string]bool{}
	for _, s := range []any{&service.Coordinator{}, &service.Worker{}} {
		flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
		require.NoError(t, config.Bind(flags, s))
		for _, m := range regexp.MustCompile(`\((REPRISE_[A-Z_]+)\)`).FindAllStringSubmatch(flags.FlagUsages(), -1) {
			known[m[1]] = true
		}
	}
	require.Equal(t, known, listed)
}
