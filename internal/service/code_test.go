package service

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/config"
)

func TestCodeSettings(t *testing.T) {
	t.Setenv("REPRISE_CODE_TIMEOUT", "7s")
	s, err := CodeSettings()
	require.NoError(t, err)
	require.Equal(t, "7s", s.CodeTimeout.String())
	require.Equal(t, "off", s.Python)
	require.Equal(t, isolationProcess, s.CodeIsolation)
}

func TestOpenCode(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*Code)
		want   string // in the error, "" is none
	}{
		{"the defaults, in a program that cannot run itself", func(*Code) {}, ""},
		{"no isolation", func(s *Code) { s.CodeIsolation = "none" }, ""},
		{"an unknown isolation", func(s *Code) { s.CodeIsolation = "jail" }, "REPRISE_CODE_ISOLATION"},
		{"too little memory", func(s *Code) { s.CodeMemory = 1 << 20 }, "REPRISE_CODE_MEMORY_BYTES"},
		{"too much memory", func(s *Code) { s.CodeMemory = 1 << 30 }, "REPRISE_CODE_MEMORY_BYTES"},
		{"no time", func(s *Code) { s.CodeTimeout = -1 }, "REPRISE_CODE_TIMEOUT"},
		{"Python that is not there", func(s *Code) { s.Python = "/nowhere/python3" }, "REPRISE_PYTHON"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var s Code
			require.NoError(t, config.Default(&s))
			row.change(&s)
			r, err := openCode(s, zap.NewNop())
			if row.want != "" {
				require.ErrorContains(t, err, row.want)
				return
			}
			require.NoError(t, err)
			defer r.close()
			require.Nil(t, r.evaluator.Scripts, "scripts run in this process")
			require.Nil(t, r.python)
		})
	}
}
