package bench

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/config"
	"github.com/reprise-engine/reprise/internal/credentials"
	"github.com/reprise-engine/reprise/internal/embedded"
	"github.com/reprise-engine/reprise/internal/mockllm"
	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/internal/stack"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
)

// The roles of the processes of a fleet.
const (
	roleCoordinator = "coordinator"
	roleWorker      = "worker"
	roleNATS        = "nats"
)

// What a child learns from its environment besides the settings of its service.
const (
	envNATSDir = "REPRISE_BENCH_NATS_DIR"
	envScript  = "REPRISE_BENCH_SCRIPT" // file with what the model answers
	envHeld    = "REPRISE_BENCH_HELD"   // the model answers after askOpen
	envThink   = "REPRISE_BENCH_THINK"  // how long the model thinks, as time.ParseDuration reads it
)

// What a child is asked on its standard input, one word a line; it answers each with a
// line. It ends with its input, so it does not outlive who started it.
const (
	askUsage   = "usage"   // -> childUsage
	askHeap    = "heap"    // the same after a collection
	askOpen    = "open"    // the model may answer
	askProfile = "profile" // begins a CPU profile, "profile FILE"
	askProfEnd = "profiled"
)

// childUsage is what a child has used up to now.
type childUsage struct {
	Error    string      `json:"error,omitempty"`
	URL      string      `json:"url,omitempty"` // of NATS
	CPU      int64       `json:"cpu"`           // ns
	Heap     int64       `json:"heap"`          // bytes, after a collection when it was asked for
	RSS      int64       `json:"rss"`           // bytes, 0 where the system does not tell
	Thinking int64       `json:"thinking"`      // requests that the model thinks about
	Store    state.Stats `json:"store"`
	Queue    queue.Stats `json:"queue"`
}

// Child is a process of a fleet that was started by Measure: a coordinator, a worker or a
// NATS server, by its role. Its settings come from the environment. It answers on out what it
// is asked on in, and ends with ctx or with in.
func Child(ctx context.Context, role string, in io.Reader, out io.Writer) error {
	c := &childProcess{}
	url, stop, err := c.start(ctx, role)
	if err != nil {
		return err
	}
	defer stop()
	defer c.profiled()
	answers := json.NewEncoder(out)
	if err := answers.Encode(childUsage{URL: url}); err != nil {
		return err
	}
	asked := make(chan string)
	go func() {
		defer close(asked)
		for lines := bufio.NewScanner(in); lines.Scan(); {
			select {
			case asked <- lines.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case line, ok := <-asked:
			if !ok {
				return nil
			}
			if err := answers.Encode(c.answer(line)); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

type childProcess struct {
	service *service.Process
	model   *cheapModel
	profile *os.File
}

func (c *childProcess) answer(line string) childUsage {
	word, rest, _ := strings.Cut(line, " ")
	u := childUsage{CPU: int64(processCPU())}
	var err error
	switch word {
	case askHeap:
		u.Heap, u.RSS = heap(), residentBytes()
	case askOpen:
		c.model.open()
	case askProfile:
		if c.profile, err = os.Create(rest); err == nil {
			err = pprof.StartCPUProfile(c.profile)
		}
	case askProfEnd:
		c.profiled()
	case askUsage:
	default:
		err = fmt.Errorf("%q is no question", word)
	}
	if err != nil {
		u.Error = err.Error()
	}
	if c.service != nil && c.service.Queue != nil {
		u.Queue = c.service.Queue.Stats()
	}
	if c.service != nil && c.service.Store != nil {
		u.Store = c.service.Store.Stats()
	}
	if c.model != nil {
		u.Thinking = c.model.thinking.Load()
	}
	return u
}

func (c *childProcess) profiled() {
	if c.profile != nil {
		pprof.StopCPUProfile()
		_ = c.profile.Close()
		c.profile = nil
	}
}

func (c *childProcess) start(ctx context.Context, role string) (url string, stop func(), err error) {
	flags := pflag.NewFlagSet(role, pflag.ContinueOnError)
	switch role {
	case roleCoordinator:
		var s service.Coordinator
		if err := config.Bind(flags, &s); err != nil {
			return "", nil, err
		}
		log, err := service.Logger(s.LogLevel)
		if err != nil {
			return "", nil, err
		}
		return c.serve(service.StartCoordinator(ctx, s, log))
	case roleWorker:
		s := service.Worker{Warm: true}
		if err := config.Bind(flags, &s); err != nil {
			return "", nil, err
		}
		log, err := service.Logger(s.LogLevel)
		if err != nil {
			return "", nil, err
		}
		if s.Credentials, s.HTTP, err = c.thinks(); err != nil {
			return "", nil, err
		}
		return c.serve(service.StartWorker(ctx, s, log))
	case roleNATS:
		n, err := embedded.StartNATS(os.Getenv(envNATSDir), embedded.NATSOptions{Logger: zap.NewNop()})
		if err != nil {
			return "", nil, err
		}
		return n.URL, n.Shutdown, nil
	}
	return "", nil, fmt.Errorf("role %q: this is a child process of reprise bench, which starts it", role)
}

func (c *childProcess) serve(p *service.Process, err error) (string, func(), error) {
	if err != nil {
		return "", nil, err
	}
	c.service = p
	return "", func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // who ends this process has no use for what it does
		p.Stop(ctx)
	}, nil
}

// thinks makes the model of a worker, and the credential that leads to it.
func (c *childProcess) thinks() (*credentials.Store, http.RoundTripper, error) {
	think, err := time.ParseDuration(cmp.Or(os.Getenv(envThink), "0s"))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", envThink, err)
	}
	c.model = newCheapModel(think, os.Getenv(envHeld) != "")
	if path := os.Getenv(envScript); path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", envScript, err)
		}
		if c.model.script, err = mockllm.ParseScript(text); err != nil {
			return nil, nil, err
		}
	}
	secrets, err := credentials.Load("")
	if err != nil {
		return nil, nil, err
	}
	secrets.Add(stack.MockCredentialID, "Mock LLM", "openAiApi", map[string]any{"apiKey": "mock", "url": "http://127.0.0.1/v1"})
	return secrets, c.model, nil
}

// residentBytes is the memory of this process that is not swapped out, 0 when it is not known.
func residentBytes() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var total, resident int64
	if _, err := fmt.Sscan(string(text), &total, &resident); err != nil {
		return 0
	}
	return resident * int64(os.Getpagesize())
}

// heap is the live heap.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what the first one finalised
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
