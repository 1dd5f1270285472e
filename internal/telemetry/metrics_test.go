package telemetry_test

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/labtest"
	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/internal/stack"
	"github.com/reprise-engine/reprise/internal/telemetry"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// metrics are what a process answers at /metrics: series with their values.
type metrics map[string]float64

func scrape(t *testing.T, addr string) metrics {
	t.Helper()
	response, err := http.Get("http://" + addr + "/metrics")
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, string(body))
	found := metrics{}
	for _, m := range regexp.MustCompile(`(?m)^(\w+(?:\{.*\})?) (\S+)$`).FindAllStringSubmatch(string(body), -1) {
		value, err := strconv.ParseFloat(m[2], 64)
		require.NoError(t, err, m[0])
		found[m[1]] = value
	}
	return found
}

func stop(t *testing.T, p *service.Process) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		p.Stop(ctx)
	})
}

func TestMetricsOfARealRun(t *testing.T) {
	lab := labtest.Start(t)
	site := lab.Site()
	site.Script(t, twoTools)
	s := startStack(t, lab, func(c *stack.Config) { c.Workers = -1 })
	// The stack's own coordinator answers nothing here: this one is to do all the work.
	first := s.Coordinators[0]
	coordinator, err := service.StartCoordinator(t.Context(), service.Coordinator{NATSURL: s.NATSURL, RedisURL: s.RedisURL, MetricsAddr: "127.0.0.1:0"}, zap.NewNop())
	require.NoError(t, err)
	stop(t, coordinator)
	first.Stop(t.Context())
	worker, err := service.StartWorker(t.Context(), service.Worker{
		NATSURL: s.NATSURL, CredentialsFile: lab.Credentials, Egress: "public", EgressAllow: []string{"127.0.0.1"}, Concurrency: 4, Lease: lease, MetricsAddr: "127.0.0.1:0",
	}, zap.NewNop())
	require.NoError(t, err)
	stop(t, worker)

	agent := submit(t, s, &queue.Submission{Workflow: site.Agent("m", labtest.HTTPTool("Look_Up", site.URL+"/shout"), labtest.Calculator())})
	awaitStatus(t, s, agent, engine.StatusSuccess)
	failing := func(id, url string) engine.ExecutionID {
		return submit(t, s, &queue.Submission{Workflow: labtest.Flow(id, nil, []labtest.Node{
			labtest.NewNode("Start", "n8n-nodes-base.manualTrigger", 1, ""), labtest.Post("Fail", url, "x"),
		}, "Start -> Fail")})
	}
	awaitStatus(t, s, failing("fails", site.URL+"/fail"), engine.StatusError)
	awaitStatus(t, s, failing("refused", "http://10.1.2.3/"), engine.StatusError)
	_, err = s.Conn.Submit(t.Context(), &queue.Submission{Workflow: []byte(`{"nodes": 1}`)})
	require.Error(t, err)
	waiting := submit(t, s, &queue.Submission{Workflow: labtest.Flow("waits", nil, []labtest.Node{
		labtest.NewNode("Start", "n8n-nodes-base.manualTrigger", 1, ""), labtest.Wait("Wait", 0.3),
	}, "Start -> Wait")})
	awaitStatus(t, s, waiting, engine.StatusSuccess)

	var c, w metrics
	require.Eventually(t, func() bool {
		c, w = scrape(t, coordinator.MetricsAddr), scrape(t, worker.MetricsAddr)
		return c[`reprise_executions_finished_total{reason="",status="success"}`] == 2 && w["reprise_worker_results_unconfirmed"] == 0
	}, 10*time.Second, 50*time.Millisecond)

	for name, want := range map[string]float64{
		`reprise_executions_started_total`:                            4,
		`reprise_executions_finished_total{reason="",status="error"}`: 2,
		`reprise_execution_duration_seconds_count{status="success"}`:  2,
		`reprise_submissions_total{code="accepted"}`:                  4,
		`reprise_submissions_total{code="invalid_workflow"}`:          1,
		`reprise_jobs_published_total{outcome="ok",pool="default"}`:   6, // the Agent twice, two tools, two requests
		`reprise_jobs_outstanding{pool="default"}`:                    0,
		`reprise_jobs_held{cause="room",pool="default"}`:              0,
		`reprise_oldest_job_age_seconds{pool="default"}`:              0,
		`reprise_executions_unfinished{status="running"}`:             0,
		`reprise_approvals_open`:                                      0,
		`reprise_executions_stuck`:                                    0,
		`reprise_dead_letters_kept`:                                   0,
		`reprise_timer_lateness_seconds_count`:                        1,
		`reprise_commits_total{result="error"}`:                       0,
		`reprise_events_queued`:                                       0,
		`reprise_dead_letters_total{reason="worker_lost"}`:            0,
	} {
		require.Contains(t, c, name)
		require.Equal(t, want, c[name], name)
	}
	for _, name := range []string{
		`reprise_commits_total{result="ok"}`, `reprise_commit_duration_seconds_sum`, `reprise_event_group_size_count`, `reprise_redis_round_trips_total`,
		`reprise_nats_messages_total{direction="in"}`, `go_goroutines`, `process_resident_memory_bytes`,
	} {
		require.Positive(t, c[name], name)
	}
	for name, want := range map[string]float64{
		`reprise_worker_jobs_total{node_type="@n8n/n8n-nodes-langchain.agent",outcome="requested"}`:      1,
		`reprise_worker_jobs_total{node_type="@n8n/n8n-nodes-langchain.agent",outcome="success"}`:        1,
		`reprise_worker_jobs_total{node_type="n8n-nodes-base.httpRequestTool",outcome="success"}`:        1,
		`reprise_worker_jobs_total{node_type="n8n-nodes-base.httpRequest",outcome="error"}`:              2,
		`reprise_worker_job_duration_seconds_count{node_type="@n8n/n8n-nodes-langchain.toolCalculator"}`: 1,
		`reprise_worker_slots{pool="default"}`:                                                           4,
		`reprise_worker_jobs_held{pool="default"}`:                                                       0,
		`reprise_model_calls_total{model="m",outcome="success",provider="openai"}`:                       2,
		`reprise_model_call_duration_seconds_count{model="m",provider="openai"}`:                         2,
		`reprise_http_requests_total{outcome="2xx"}`:                                                     3,
		`reprise_http_requests_total{outcome="5xx"}`:                                                     1,
		`reprise_http_requests_total{outcome="refused"}`:                                                 1,
		`reprise_worker_jobs_redelivered_total`:                                                          0,
		`reprise_worker_code_abandoned`:                                                                  0,
	} {
		require.Contains(t, w, name)
		require.Equal(t, want, w[name], name)
	}
	require.Positive(t, w[`reprise_model_tokens_total{direction="input",model="m",provider="openai"}`])
	require.Positive(t, w[`reprise_model_tokens_total{direction="output",model="m",provider="openai"}`])

	// All that is documented is there, once there is something to tell.
	for what, found := range map[string]metrics{"coordinator": c, "worker": w} {
		known := telemetry.CoordinatorMetrics()
		if what == "worker" {
			known = telemetry.WorkerMetrics()
		}
		for _, m := range known {
			require.True(t, has(found, m.Name), "%s tells no %s", what, m.Name)
		}
		for name := range found {
			require.NotContains(t, name, string(agent))
		}
	}
}

func has(found metrics, name string) bool {
	for series := range found {
		if at, _, _ := strings.Cut(series, "{"); base(at) == name {
			return true
		}
	}
	return false
}
