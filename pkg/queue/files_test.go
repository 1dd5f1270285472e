package queue

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/embedded"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
)

// noise is a stream of bytes that no compression makes smaller, the same for the same seed.
func noise(seed byte, size int64) io.Reader {
	return io.LimitReader(rand.NewChaCha8([32]byte{seed}), size)
}

func readFile(t *testing.T, f Files, id string) ([]byte, error) {
	t.Helper()
	r, err := f.Get(t.Context(), id)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

func filePieces(t *testing.T, c *Conn) uint64 {
	t.Helper()
	stream, err := c.js.Stream(t.Context(), StreamFiles)
	require.NoError(t, err)
	return stream.CachedInfo().State.Msgs
}

func TestFilesComeBackAsTheyWere(t *testing.T) {
	coordinator, worker := start(t)
	files := worker.Files()
	piece := int64(worker.chunkSize())
	for name, size := range map[string]int64{"small": 1, "one piece": piece, "one byte more": piece + 1, "two pieces": 2 * piece, "many": 5*piece + 17} {
		t.Run(name, func(t *testing.T) {
			want, err := io.ReadAll(noise(1, size))
			require.NoError(t, err)
			id, err := files.Put(t.Context(), "exec-1", iotest.HalfReader(bytes.NewReader(want)))
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(id, "nats:exec-1/"), id)
			got, err := readFile(t, coordinator.Files(), id)
			require.NoError(t, err)
			require.Equal(t, sha256.Sum256(want), sha256.Sum256(got))
			require.NoError(t, files.Remove(t.Context(), id))
			require.NoError(t, files.Remove(t.Context(), id), "a second time")
			_, err = files.Get(t.Context(), id)
			require.ErrorIs(t, err, node.ErrFileGone)
		})
	}
	require.Zero(t, filePieces(t, coordinator))
}

func TestFilesGoWithTheirExecution(t *testing.T) {
	coordinator, worker := start(t)
	var kept string
	for _, execution := range []engine.ExecutionID{"exec-1", "exec-1", "exec-10", "exec-2"} {
		id, err := worker.Files().Put(t.Context(), execution, noise(2, 1<<20))
		require.NoError(t, err)
		if execution == "exec-10" {
			kept = id
		}
	}
	files := coordinator.Files()
	owners, upTo, err := files.Owners(t.Context())
	require.NoError(t, err)
	require.ElementsMatch(t, []engine.ExecutionID{"exec-1", "exec-10", "exec-2"}, owners)

	again, err := worker.Files().Put(t.Context(), "exec-2", noise(3, 10))
	require.NoError(t, err)
	require.NoError(t, files.RemoveOf(t.Context(), "exec-1", upTo))
	require.NoError(t, files.RemoveOf(t.Context(), "exec-2", upTo))
	owners, _, err = files.Owners(t.Context())
	require.NoError(t, err)
	require.ElementsMatch(t, []engine.ExecutionID{"exec-10", "exec-2"}, owners, "exec-2 was used again, and has a new file")
	for _, id := range []string{kept, again} {
		_, err := readFile(t, files, id)
		require.NoError(t, err)
	}
}

func TestNothingIsLeftOfAnUploadThatFails(t *testing.T) {
	coordinator, worker := start(t)
	torn := errors.New("the sender hung up")
	_, err := worker.Files().Put(t.Context(), "exec-1", io.MultiReader(noise(4, 3<<20), iotest.ErrReader(torn)))
	require.ErrorIs(t, err, torn)
	ctx, cancel := context.WithCancel(t.Context())
	_, err = worker.Files().Put(ctx, "exec-1", io.MultiReader(noise(4, 3<<20), readerFunc(func([]byte) (int, error) { cancel(); return 0, io.EOF }), noise(4, 3<<20)))
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, filePieces(t, coordinator))
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestDamagedFilesAreErrors(t *testing.T) {
	coordinator, worker := start(t)
	files := worker.Files()
	id, err := files.Put(t.Context(), "exec-1", noise(5, 3<<20))
	require.NoError(t, err)
	stream, err := coordinator.js.Stream(t.Context(), StreamFiles)
	require.NoError(t, err)
	require.NoError(t, stream.DeleteMsg(t.Context(), 2))
	_, err = readFile(t, files, id)
	require.ErrorIs(t, err, node.ErrFileGone)
	require.ErrorContains(t, err, "piece 1 is missing")

	_, err = coordinator.js.PublishMsg(t.Context(), &nats.Msg{
		Subject: subjectFile + "exec-2.x", Data: []byte("other"), Header: nats.Header{HeaderFilePiece: {"0"}, HeaderFileEnd: {"00"}},
	})
	require.NoError(t, err)
	_, err = readFile(t, files, "nats:exec-2/x")
	require.ErrorContains(t, err, "not what was stored")

	for _, id := range []string{"", "x", "nats:", "nats:a", "nats:a/*", "nats:>/x", "nats:a.b/c", "filesystem-v2:a/b"} {
		_, err := files.Get(t.Context(), id)
		require.ErrorIs(t, err, node.ErrFileGone, id)
		require.ErrorContains(t, err, "no id of a file", id)
	}
	_, err = files.Put(t.Context(), "a.*", noise(1, 1))
	require.Error(t, err)
}

// A piece whose confirmation was lost is sent again, and stored once.
func TestAServerThatIsAwayForAMomentCostsNoFile(t *testing.T) {
	dir := t.TempDir()
	n := startNATS(t, dir, embedded.NATSOptions{})
	address, err := url.Parse(n.URL)
	require.NoError(t, err)
	port, err := strconv.Atoi(address.Port())
	require.NoError(t, err)
	worker := connect(t, n.URL)
	require.NoError(t, worker.EnsureStreams(t.Context(), Streams{}))
	restarted := false
	id, err := worker.Files().Put(t.Context(), "exec-1", io.MultiReader(noise(6, 3<<20), readerFunc(func([]byte) (int, error) {
		if !restarted {
			restarted = true
			n.Shutdown()
			n = startNATS(t, dir, embedded.NATSOptions{Port: port})
		}
		return 0, io.EOF
	}), noise(7, 3<<20)))
	require.NoError(t, err)
	require.True(t, restarted)
	want, err := io.ReadAll(io.MultiReader(noise(6, 3<<20), noise(7, 3<<20)))
	require.NoError(t, err)
	got, err := readFile(t, worker.Files(), id)
	require.NoError(t, err)
	require.Equal(t, sha256.Sum256(want), sha256.Sum256(got))
}

func TestFullStreamRefusesFiles(t *testing.T) {
	coordinator, worker := start(t)
	require.NoError(t, coordinator.EnsureStreams(t.Context(), Streams{MaxFileBytes: 2 << 20}))
	_, err := worker.Files().Put(t.Context(), "exec-1", noise(8, 4<<20))
	require.ErrorIs(t, err, ErrFull)
	require.Zero(t, filePieces(t, coordinator), "what was stored of it is removed")
	_, err = worker.Files().Put(t.Context(), "exec-1", noise(8, 1<<20))
	require.NoError(t, err)
}

// Coordinators create the stream again; the files in it are gone.
func TestMissingStreamOfFilesIsCreatedAgain(t *testing.T) {
	coordinator, worker := start(t)
	id, err := worker.Files().Put(t.Context(), "exec-1", noise(9, 100))
	require.NoError(t, err)
	require.NoError(t, coordinator.js.DeleteStream(t.Context(), StreamFiles))
	_, _, err = worker.Files().Owners(t.Context())
	require.ErrorIs(t, err, ErrNoStream)
	owners, _, err := coordinator.Files().Owners(t.Context())
	require.NoError(t, err)
	require.Empty(t, owners)
	_, err = worker.Files().Get(t.Context(), id)
	require.ErrorIs(t, err, node.ErrFileGone)
	_, err = coordinator.js.Stream(t.Context(), StreamFiles)
	require.NotErrorIs(t, err, jetstream.ErrStreamNotFound)
}
