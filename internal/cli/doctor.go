package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
)

// finding is one thing that the doctor looked at.
type finding struct {
	Check  string `json:"check"`
	OK     bool   `json:"ok"`
	Found  string `json:"found"`
	Advice string `json:"advice,omitempty"` // what to do when it is not OK
}

const (
	maxClockSkew  = time.Second
	slowRoundTrip = 20 * time.Millisecond
)

func doctorCommand() *cobra.Command {
	var s servers
	var asOutput string
	var stuckAfter time.Duration
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check that Redis and NATS are set up so that nothing can be lost; say what to do.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := output(asOutput)
			if err := o.set(outputText, outputJSON); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), 15*time.Second)
			defer cancel()
			redis, redisErr := examineRedis(ctx, s.redis, stuckAfter)
			nats, natsErr := examineNATS(ctx, s.nats)
			findings := append(redis, nats...)
			if o == outputJSON {
				if err := printJSON(cmd.OutOrStdout(), findings); err != nil {
					return err
				}
			} else {
				printFindings(cmd.OutOrStdout(), styleFor(cmd.OutOrStdout()), findings)
			}
			if redisErr != nil || natsErr != nil {
				return &exitError{code: service.ExitUnavailable}
			}
			for _, f := range findings {
				if !f.OK {
					return &exitError{code: service.ExitFailed}
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&asOutput, "output", string(outputText), "text or json")
	s.natsFlag(cmd, defaultNATS, "NATS server")
	fallback := 15 * time.Minute
	if d, err := time.ParseDuration(os.Getenv("REPRISE_STUCK_AFTER")); err == nil && d > 0 {
		fallback = d
	}
	cmd.Flags().DurationVar(&stuckAfter, "stuck-after", fallback, "how long a running execution may make no progress (REPRISE_STUCK_AFTER)")
	s.redisFlag(cmd, "Redis server (default redis://127.0.0.1:6379)")
	return cmd
}

func printFindings(out io.Writer, s style, findings []finding) {
	for _, f := range findings {
		mark := s.green("✓")
		if !f.OK {
			mark = s.red("✗")
		}
		fmt.Fprintf(out, "%s %-22s %s\n", mark, f.Check, f.Found)
		if !f.OK && f.Advice != "" {
			fmt.Fprintf(out, "    %s\n", s.yellow(f.Advice))
		}
	}
}

func examineRedis(ctx context.Context, url string, stuckAfter time.Duration) ([]finding, error) {
	if url == "" {
		url = "redis://127.0.0.1:6379"
	}
	config, err := redisConfig(url)
	if err != nil {
		return []finding{{Check: "Redis", Found: err.Error()}}, err
	}
	store, err := state.Open(ctx, config)
	if err != nil {
		return []finding{{Check: "Redis", Found: err.Error(), Advice: "start Redis, or set --redis or REPRISE_REDIS_URL"}}, err
	}
	defer func() { _ = store.Close() }()
	info, err := store.Inspect(ctx)
	if err != nil {
		return []finding{{Check: "Redis", Found: err.Error()}}, err
	}
	kind := "one server"
	if info.Cluster {
		kind = fmt.Sprintf("a cluster of %d masters", info.Nodes)
	}
	persistence := "append-only file off"
	if info.AppendOnly {
		persistence = "append-only file on"
	}
	policy := "noeviction"
	if info.MaxmemoryPolicy != "" {
		policy = info.MaxmemoryPolicy
	}
	memory := fmt.Sprintf("%d MB used, no limit", info.UsedMemory>>20)
	full := false
	if info.Maxmemory > 0 {
		memory = fmt.Sprintf("%d of %d MB used", info.UsedMemory>>20, info.Maxmemory>>20)
		full = info.UsedMemory > info.Maxmemory/10*9
	}
	findings := []finding{
		{Check: "Redis", OK: true, Found: fmt.Sprintf("version %s, %s", info.Version, kind)},
		{
			Check: "Redis persistence", OK: info.AppendOnly, Found: persistence,
			Advice: "a restart of Redis loses all executions: set \"appendonly yes\" (redis-cli config set appendonly yes)",
		},
		{
			Check: "Redis loads its file", OK: !info.DefaultRestricted, Found: map[bool]string{false: "nothing keeps it from that", true: "the user \"default\" may not write"}[info.DefaultRestricted],
			Advice: "a restart of Redis would lose all executions, since it drops the transactions of its append-only file that the rights of \"default\" do not allow: " +
				"switch him off and leave him his rights (user default off resetpass ~* &* +@all)",
		},
		{
			Check: "Redis eviction", OK: policy == "noeviction", Found: policy,
			Advice: "a full Redis would throw away running executions: set \"maxmemory-policy noeviction\"",
		},
		{Check: "Redis memory", OK: !full, Found: memory, Advice: "new work is refused when it is full: raise maxmemory or shorten REPRISE_RETENTION"},
		{
			Check: "Redis clock", OK: info.ClockSkew.Abs() < maxClockSkew, Found: fmt.Sprintf("%s ahead of this machine", info.ClockSkew.Round(time.Millisecond)),
			Advice: "keep the machines' clocks in step (chrony, systemd-timesyncd)",
		},
		{
			Check: "Redis round trip", OK: info.RoundTrip < slowRoundTrip, Found: info.RoundTrip.Round(10 * time.Microsecond).String(),
			Advice: "every step of an execution waits for a round trip: move coordinators closer to Redis",
		},
	}
	stuck, err := examineStuck(ctx, store, stuckAfter)
	if err != nil {
		return findings, err
	}
	return append(findings, stuck), nil
}

// maxNamed is how many executions without progress are named.
const maxNamed = 10

// examineStuck names the running executions that make no progress.
func examineStuck(ctx context.Context, store *state.Store, after time.Duration) (finding, error) {
	now := time.Now()
	stuck, err := store.Stuck(ctx, now.Add(-after).UnixMilli())
	if err != nil {
		return finding{}, err
	}
	f := finding{
		Check: "stuck executions", OK: len(stuck) == 0, Found: fmt.Sprintf("none runs without progress for %s", after),
		Advice: "look at what they run with `reprise executions show ID`; if it never ends, cancel them, and give the node a timeout",
	}
	if len(stuck) > 0 {
		f.Found = fmt.Sprintf("%d run without progress for %s, the first for %s:", len(stuck), after, now.Sub(time.UnixMilli(stuck[0].Moved)).Round(time.Second))
		for _, s := range stuck[:min(len(stuck), maxNamed)] {
			f.Found += " " + string(s.Execution)
		}
	}
	return f, nil
}

func examineNATS(ctx context.Context, url string) ([]finding, error) {
	config, err := natsConfig(url, "reprise-doctor")
	if err != nil {
		return []finding{{Check: "NATS", Found: err.Error()}}, err
	}
	conn, err := queue.Connect(ctx, config)
	if err != nil {
		return []finding{{Check: "NATS", Found: err.Error(), Advice: "start nats-server with -js, or set --nats or REPRISE_NATS_URL"}}, err
	}
	defer conn.Close()
	info, err := conn.Inspect(ctx)
	if err != nil {
		return []finding{{Check: "NATS", Found: err.Error()}}, err
	}
	findings := []finding{
		{Check: "NATS", OK: true, Found: fmt.Sprintf("version %s", info.Version)},
		{Check: "NATS JetStream", OK: true, Found: "on"},
		{
			Check: "NATS payload", OK: info.MaxPayloadBytes >= 1<<20, Found: fmt.Sprintf("max_payload %d KB", info.MaxPayloadBytes>>10),
			Advice: "larger payloads go through the object store at twice the cost: raise max_payload (deploy/nats.conf has 8 MB)",
		},
		{
			Check: "NATS round trip", OK: info.RoundTrip < slowRoundTrip, Found: info.RoundTrip.Round(10 * time.Microsecond).String(),
			Advice: "move coordinators and workers closer to NATS",
		},
	}
	stream := "not created yet: the first coordinator does it"
	if info.JobsStream {
		stream = fmt.Sprintf("%d jobs queued or running", info.Jobs)
	}
	findings = append(findings, finding{Check: "job stream", OK: true, Found: stream})
	answers, err := conn.Coordinators(ctx)
	if err != nil {
		return findings, err
	}
	return append(findings, finding{
		Check: "coordinators", OK: answers > 0, Found: fmt.Sprintf("%d running", answers),
		Advice: "start one: coordinator --nats-url … --redis-url …",
	}), nil
}
