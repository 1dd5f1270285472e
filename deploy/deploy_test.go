// Package deploy_test checks the files people deploy with against the program.
package deploy_test

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/cli"
	"github.com/reprise-engine/reprise/internal/service"
)

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(data)
}

func TestNATSConfig(t *testing.T) {
	options, err := natsserver.ProcessConfigFile("nats.conf")
	require.NoError(t, err)
	assert.EqualValues(t, 8<<20, options.MaxPayload)
	assert.True(t, options.JetStream)
	assert.Equal(t, "/data", options.StoreDir, "the volume of docker-compose.yml")
	assert.Equal(t, 4222, options.Port)
	assert.Equal(t, 8222, options.HTTPPort, "the port of the health check")
}

// composeServices splits a compose file into the text of each service.
func composeServices(t *testing.T, file string) map[string]string {
	t.Helper()
	_, text, found := strings.Cut(read(t, file), "\nservices:\n")
	require.True(t, found)
	services := map[string]string{}
	name := ""
	for line := range strings.Lines(text) {
		if line[0] != ' ' && line[0] != '\n' {
			break // the next section
		}
		if m := regexp.MustCompile(`^  ([a-z-]+):\n`).FindStringSubmatch(line); m != nil {
			name = m[1]
		}
		services[name] += line
	}
	return services
}

// variables are the environment variables that a service's settings name.
func variables(settings any) []string {
	var names []string
	for field := range fields(reflect.TypeOf(settings)) {
		if field.Anonymous {
			names = append(names, variables(reflect.New(field.Type).Elem().Interface())...)
			continue
		}
		if name := field.Tag.Get("env"); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

func fields(t reflect.Type) func(yield func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}

func TestComposeVariables(t *testing.T) {
	for _, file := range []string{"../docker-compose.yml", "../docker-compose.hardened.yml"} {
		services := composeServices(t, file)
		for name, settings := range map[string]any{"coordinator": service.Coordinator{}, "worker": service.Worker{}} {
			t.Run(file+"/"+name, func(t *testing.T) {
				set := regexp.MustCompile(`(?m)^[ #]+(REPRISE_[A-Z_]+):`).FindAllStringSubmatch(services[name], -1)
				require.NotEmpty(t, set)
				known := variables(settings)
				for _, m := range set {
					if variable := strings.TrimSuffix(m[1], "_FILE"); !slices.Contains(known, variable) {
						assert.Contains(t, known, m[1], "the program does not read this variable")
					}
				}
			})
		}
		assert.NotContains(t, services["worker"], "REPRISE_REDIS_URL", "workers have no way to Redis")
		assert.Regexp(t, `networks: (!override )?\[jobs(, out)?\]\n`, services["worker"], "workers have no way to Redis")
	}
}

func TestComposeStopsGracefully(t *testing.T) {
	services := composeServices(t, "../docker-compose.yml")
	for _, name := range []string{"coordinator", "worker"} {
		duration := func(pattern string) time.Duration {
			m := regexp.MustCompile(pattern).FindStringSubmatch(services[name])
			require.NotNil(t, m, pattern)
			d, err := time.ParseDuration(m[1])
			require.NoError(t, err)
			return d
		}
		assert.Greater(t, duration(`stop_grace_period: (\S+)`), duration(`REPRISE_DRAIN_TIMEOUT: (\S+)`), name)
	}
}

func TestComposePublishesOnLoopbackOnly(t *testing.T) {
	ports := regexp.MustCompile(`(?m)^ +ports:\n((?: +- .*\n)+)`).FindAllStringSubmatch(read(t, "../docker-compose.yml"), -1)
	require.NotEmpty(t, ports)
	for _, list := range ports {
		for line := range strings.Lines(list[1]) {
			assert.Regexp(t, `^ +- "127\.0\.0\.1:\d+:\d+"\n$`, line)
		}
	}
}

// What the compose file has the image run is a command of the program in it.
func TestComposeCommandsExist(t *testing.T) {
	commands := map[string]bool{}
	for _, c := range cli.Root().Commands() {
		commands[c.Name()] = true
	}
	services := composeServices(t, "../docker-compose.yml")
	for _, name := range []string{"coordinator", "worker", "mock-llm"} {
		m := regexp.MustCompile(`command: \["([a-z-]+)"`).FindStringSubmatch(services[name])
		require.NotNil(t, m, name)
		assert.True(t, commands[m[1]], m[1])
	}
	m := regexp.MustCompile(`HEALTHCHECK .* CMD \["reprise", "([a-z]+)"\]`).FindStringSubmatch(read(t, "Dockerfile"))
	require.NotNil(t, m)
	assert.True(t, commands[m[1]])
}

// Docker refuses to copy what .dockerignore hides.
func TestDockerignoreLetsSourcesThrough(t *testing.T) {
	ignore := read(t, "../.dockerignore")
	for _, m := range regexp.MustCompile(`(?m)^COPY ([a-z]+) [a-z]+$`).FindAllStringSubmatch(read(t, "Dockerfile"), -1) {
		assert.Contains(t, ignore, "\n!"+m[1]+"\n")
	}
}
