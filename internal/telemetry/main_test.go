package telemetry_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/reprise-engine/reprise/internal/service"
)

// envChild makes the test program a worker, which a test can kill.
const envChild = "REPRISE_TELEMETRY_TEST_WORKER"

// lease of the workers of these tests.
const lease = time.Second

func TestMain(m *testing.M) {
	if os.Getenv(envChild) == "" {
		os.Exit(m.Run())
	}
	_, err := service.StartWorker(context.Background(), service.Worker{
		NATSURL: os.Getenv("REPRISE_NATS_URL"), CredentialsFile: os.Getenv("REPRISE_CREDENTIALS_FILE"), Egress: "any", Lease: lease,
	}, zap.NewNop())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin) // until its test is gone
	os.Exit(0)
}

// startChild starts a worker in a process of its own, and returns what kills it.
func startChild(t *testing.T, nats, credentials string) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envChild+"=1", "REPRISE_NATS_URL="+nats, "REPRISE_CREDENTIALS_FILE="+credentials, "OTEL_SERVICE_NAME=killed-worker")
	cmd.Stderr = os.Stderr
	_, err := cmd.StdinPipe() // it is closed when this process ends
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	return kill
}

// span is one that a collector got.
type span struct {
	*trace.Span
	service string
	id      string
	parent  string
	traceID string
}

// attribute of a span as text; "" when it has none.
func (s *span) attribute(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return text(a.Value)
		}
	}
	return ""
}

func text(v *common.AnyValue) string {
	switch v := v.Value.(type) {
	case *common.AnyValue_StringValue:
		return v.StringValue
	case *common.AnyValue_IntValue:
		return fmt.Sprint(v.IntValue)
	case *common.AnyValue_ArrayValue:
		out := ""
		for _, one := range v.ArrayValue.Values {
			out += text(one) + ","
		}
		return out
	}
	return v.String()
}

// spans are those of a collector.
type spans struct {
	mu  sync.Mutex
	all []*span
}

// startCollector starts an OTLP collector and has the services of this process send to it.
func startCollector(t *testing.T) *spans {
	t.Helper()
	s := &spans{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.receive(r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
	return s
}

func (s *spans) receive(r *http.Request) error {
	if r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		return fmt.Errorf("%s with %s is no OTLP", r.URL.Path, r.Header.Get("Content-Type"))
	}
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			return err
		}
		body = unzipped
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	var request collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(data, &request); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range request.ResourceSpans {
		name := ""
		for _, a := range resource.Resource.Attributes {
			if a.Key == "service.name" {
				name = text(a.Value)
			}
		}
		for _, scope := range resource.ScopeSpans {
			for _, one := range scope.Spans {
				s.all = append(s.all, &span{one, name, hex.EncodeToString(one.SpanId), hex.EncodeToString(one.ParentSpanId), hex.EncodeToString(one.TraceId)})
			}
		}
	}
	return nil
}

// named are the spans of an execution's trace with a name.
func (s *spans) named(traceID, name string) (found []*span) {
	for _, one := range s.of(traceID) {
		if one.Name == name {
			found = append(found, one)
		}
	}
	return found
}

func (s *spans) of(traceID string) (found []*span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.all {
		if traceID == "" || one.traceID == traceID {
			found = append(found, one)
		}
	}
	return found
}

// root waits for an execution's span.
func (s *spans) root(t *testing.T, execution string) (root *span) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, one := range s.of("") {
			if one.attribute("reprise.execution.id") == execution && one.attribute("reprise.execution.status") != "" {
				root = one
				return true
			}
		}
		return false
	}, 20*time.Second, 20*time.Millisecond, "no span of execution %s", execution)
	return root
}

// below requires that a span leads up to another.
func (s *spans) below(t *testing.T, one, top *span) {
	t.Helper()
	byID := map[string]*span{}
	for _, other := range s.of(top.traceID) {
		byID[other.id] = other
	}
	for at := one; at.id != top.id; {
		above := byID[at.parent]
		require.NotNil(t, above, "%s (%s): its parent %s was not written", at.Name, at.service, at.parent)
		at = above
	}
}
