package embedded

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap/zaptest"
)

// parentEnv turns the test binary into the parent of a redis-server, see
// TestRedisDiesWithItsParent.
const parentEnv = "REPRISE_EMBEDDED_TEST_PARENT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentEnv); dir != "" {
		r, err := StartRedis(dir, RedisOptions{})
		if err != nil {
			panic(err)
		}
		_, _ = os.Stdout.WriteString(strconv.Itoa(r.PID) + "\n")
		select {}
	}
	goleak.VerifyTestMain(m)
}

func TestNATSKeepsItsStreamsInDir(t *testing.T) {
	dir := t.TempDir()
	ctx := t.Context()
	for run := range 2 {
		n, err := StartNATS(dir, NATSOptions{Logger: zaptest.NewLogger(t)})
		require.NoError(t, err)
		_, err = StartNATS(dir, NATSOptions{})
		require.ErrorIs(t, err, ErrDirInUse)

		nc, err := nats.Connect(n.URL)
		require.NoError(t, err)
		js, err := jetstream.New(nc)
		require.NoError(t, err)
		if run == 0 {
			_, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, Storage: jetstream.FileStorage})
			require.NoError(t, err)
			_, err = js.Publish(ctx, "s", []byte("kept"))
			require.NoError(t, err)
		}
		stream, err := js.Stream(ctx, "S")
		require.NoError(t, err)
		msg, err := stream.GetMsg(ctx, 1)
		require.NoError(t, err)
		require.Equal(t, "kept", string(msg.Data))
		nc.Close()
		n.Shutdown()
		n.Shutdown()
	}
}

func TestNATSCredentials(t *testing.T) {
	for name, o := range map[string]NATSOptions{
		"token": {Token: "s3cret/+"},
		"user":  {Username: "me", Password: "p@ss:word"},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := StartNATS("", o)
			require.NoError(t, err)
			defer n.Shutdown()
			nc, err := nats.Connect(n.URL)
			require.NoError(t, err)
			nc.Close()
			bare, err := url.Parse(n.URL)
			require.NoError(t, err)
			bare.User = nil
			_, err = nats.Connect(bare.String())
			require.ErrorIs(t, err, nats.ErrAuthorization)
		})
	}
}

func TestNATSTemporaryDirectoryIsRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	n, err := StartNATS("", NATSOptions{})
	require.NoError(t, err)
	entries, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Len(t, entries, 1)
	n.Shutdown()
	entries, err = os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestNATSPortTaken(t *testing.T) {
	n, err := StartNATS("", NATSOptions{})
	require.NoError(t, err)
	defer n.Shutdown()
	u, err := url.Parse(n.URL)
	require.NoError(t, err)
	port, err := strconv.Atoi(u.Port())
	require.NoError(t, err)
	started := time.Now()
	_, err = StartNATS("", NATSOptions{Port: port})
	require.ErrorContains(t, err, u.Port())
	require.Less(t, time.Since(started), startTimeout/2)
}

func TestRedis(t *testing.T) {
	deep := t.TempDir() + "/" + strings.Repeat("deep/", 30)
	for name, test := range map[string]struct {
		dir  string
		o    RedisOptions
		kind string
	}{
		"socket":      {t.TempDir(), RedisOptions{Logger: zaptest.NewLogger(t)}, KindRedisServer},
		"long path":   {deep, RedisOptions{}, KindRedisServer},
		"port":        {"", RedisOptions{TCP: true}, KindRedisServer},
		"miniredis":   {"", RedisOptions{Miniredis: true}, KindMiniredis},
		"append only": {t.TempDir(), RedisOptions{AppendOnly: true}, KindRedisServer},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := StartRedis(test.dir, test.o)
			require.NoError(t, err)
			defer r.Shutdown()
			require.Equal(t, test.kind, r.Kind)
			client := open(t, r)

			now, err := client.Time(t.Context()).Result()
			require.NoError(t, err)
			require.WithinDuration(t, time.Now(), now, time.Minute)
			require.NoError(t, client.Set(t.Context(), "k", "v", 50*time.Millisecond).Err())
			require.Eventually(t, func() bool {
				return client.Exists(t.Context(), "k").Val() == 0
			}, 5*time.Second, 5*time.Millisecond, "keys must expire by the clock")
			later, err := client.Time(t.Context()).Result()
			require.NoError(t, err)
			require.Greater(t, later, now)
		})
	}
}

func TestRedisAppendOnlyContinues(t *testing.T) {
	dir := t.TempDir()
	for run := range 2 {
		r, err := StartRedis(dir, RedisOptions{AppendOnly: true})
		require.NoError(t, err)
		_, err = StartRedis(dir, RedisOptions{})
		require.ErrorIs(t, err, ErrDirInUse)
		count, err := open(t, r).Incr(t.Context(), "starts").Result()
		require.NoError(t, err)
		require.EqualValues(t, run+1, count)
		r.Shutdown()
		r.Shutdown()
	}
}

func TestRedisThatCannotStartSaysWhy(t *testing.T) {
	r, err := StartRedis("", RedisOptions{TCP: true})
	require.NoError(t, err)
	defer r.Shutdown()
	u, err := url.Parse(r.URL)
	require.NoError(t, err)
	port, err := strconv.Atoi(u.Port())
	require.NoError(t, err)
	_, err = startRedisServer("redis-server", t.TempDir(), RedisOptions{Port: port, Binary: "redis-server"})
	require.ErrorContains(t, err, "another redis-server")
	_, err = StartRedis("", RedisOptions{Binary: "/bin/false"})
	require.ErrorContains(t, err, "ended at once")
}

func TestRedisDiesWithItsParent(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentEnv+"="+t.TempDir())
	out, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	line := make([]byte, 20)
	n, err := out.Read(line)
	require.NoError(t, err)
	pid := strings.TrimSpace(string(line[:n]))
	require.DirExists(t, "/proc/"+pid)

	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait()
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		// A zombie nobody reaps yet is as dead as one that is gone.
		return err != nil || strings.Contains(string(stat), ") Z ")
	}, 5*time.Second, 5*time.Millisecond)
}

func open(t *testing.T, r *Redis) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(r.URL)
	require.NoError(t, err)
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	require.NoError(t, client.Ping(context.Background()).Err())
	return client
}
