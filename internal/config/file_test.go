package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/config"
)

func TestSecretsComeFromFilesToo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte("a secret\n"), 0o600))
	bind := func() (settings, *pflag.FlagSet, error) {
		var s settings
		flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
		err := config.Bind(flags, &s)
		return s, flags, err
	}
	t.Setenv("REPRISE_TEST_KEY_FILE", file)
	t.Setenv("REPRISE_TEST_POOLS_FILE", file) // no secret, so no such variable
	s, flags, err := bind()
	require.NoError(t, err)
	require.Equal(t, "a secret", s.Key)
	require.Equal(t, []string{"default"}, s.Pools)
	require.NotContains(t, flags.FlagUsages(), "a secret")

	t.Setenv("REPRISE_TEST_KEY", "another")
	_, _, err = bind()
	require.ErrorContains(t, err, "REPRISE_TEST_KEY and REPRISE_TEST_KEY_FILE are both set")
	require.NotContains(t, err.Error(), "another")
	t.Setenv("REPRISE_TEST_KEY", "")
	t.Setenv("REPRISE_TEST_KEY_FILE", file+".none")
	_, _, err = bind()
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(file, []byte("\n"), 0o600))
	t.Setenv("REPRISE_TEST_KEY_FILE", file)
	_, _, err = bind()
	require.ErrorContains(t, err, "is empty")
}
