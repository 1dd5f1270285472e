// Package stack runs coordinators and workers in this process, on given
// servers or on embedded ones. It is what the command line runs workflows with;
// the services are the same as those that are operated as processes.
package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/credentials"
	"github.com/reprise-engine/reprise/internal/embedded"
	"github.com/reprise-engine/reprise/internal/mockllm"
	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// MockCredentialID is the credential that the examples use: it leads to a mock
// LLM that the stack starts.
const MockCredentialID = "mock-llm"

// Config of a stack.
type Config struct {
	// NATSURL and RedisURL of running servers; empty starts embedded ones.
	NATSURL, RedisURL string
	// NATSPort of the embedded server; 0 is any free one.
	NATSPort int
	// Dir keeps the embedded servers' data over restarts; empty is a temporary one.
	Dir string
	// Coordinators and Workers to start (0 is 1 each; a negative number of Workers
	// is none), Concurrency of a worker and Pools it serves (when not given, as in the services).
	Coordinators, Workers, Concurrency int
	Pools                              []string
	// HTTPAddr is where the first coordinator answers questions and webhooks; a port of
	// 0 is any free one, empty is nowhere. PublicURL is how people reach it; empty is
	// HTTPAddr itself.
	HTTPAddr, PublicURL string
	// CredentialsFile for the workers.
	CredentialsFile string
	// MockLLM starts the mock LLM and offers it as credential MockCredentialID. With
	// Script, every OpenAI credential leads to it.
	MockLLM   bool
	Script    *mockllm.Script
	ThinkTime time.Duration
	// Egress of all, as in the services, and EgressAllow. Empty is "any": what runs on
	// the machine of its user talks to servers beside it.
	Egress      string
	EgressAllow []string
	// Code and Disk of the workers, as in the services.
	Code service.Code
	Disk service.Disk
	// WorkerHTTP, when not nil, carries the HTTP requests of nodes instead of the network.
	WorkerHTTP http.RoundTripper
	// SweepAfter and Lease as in the services; 0 is their default.
	SweepAfter, Lease time.Duration
	Log               *zap.Logger
}

// Stack is a running stack.
type Stack struct {
	// Conn is a client's connection to NATS.
	Conn              *queue.Conn
	NATSURL, RedisURL string
	// RedisKind says what Redis is embedded: "redis-server", "miniredis", or ""
	// for one that was given.
	RedisKind string
	// PublicURL is the base of the links in questions and of resume URLs, "" without HTTP.
	PublicURL string
	// MockURL is the base URL of the mock LLM, "" without one.
	MockURL      string
	Coordinators []*service.Process
	Workers      []*service.Process

	stops []func()
	once  sync.Once
}

// Start starts everything; when a part fails, what was started is stopped.
func Start(ctx context.Context, c Config) (*Stack, error) {
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	s := &Stack{NATSURL: c.NATSURL, RedisURL: c.RedisURL}
	if err := s.start(ctx, c); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// Stop ends everything, last started first. A second call is harmless.
func (s *Stack) Stop() {
	s.once.Do(func() {
		for i := len(s.stops) - 1; i >= 0; i-- {
			s.stops[i]()
		}
	})
}

// stopTimeout is what a service in this process may take to finish what it runs.
const stopTimeout = 5 * time.Second

func (s *Stack) start(ctx context.Context, c Config) error {
	if err := s.servers(c); err != nil {
		return err
	}
	secrets, err := credentials.Load(c.CredentialsFile)
	if err != nil {
		return err
	}
	if c.MockLLM || c.Script != nil {
		if err := s.mock(c, secrets); err != nil {
			return err
		}
	}
	listen, err := s.public(c)
	if err != nil {
		return err
	}
	egress := c.Egress
	if egress == "" {
		egress = "any"
	}
	for i := range max(c.Coordinators, 1) {
		settings := service.Coordinator{
			NATSURL: s.NATSURL, RedisURL: s.RedisURL, SweepAfter: c.SweepAfter, PublicURL: s.PublicURL,
			Egress: egress, EgressAllow: c.EgressAllow,
		}
		if i == 0 {
			settings.HTTPAddr = listen // one listens, and links made by all lead to it
		}
		p, err := service.StartCoordinator(ctx, settings, c.Log)
		if err != nil {
			return err
		}
		s.Coordinators = append(s.Coordinators, p)
		s.stops = append(s.stops, stopProcess(p))
	}
	workers := c.Workers
	if workers == 0 {
		workers = 1
	}
	for range workers {
		p, err := service.StartWorker(ctx, service.Worker{
			NATSURL: s.NATSURL, Pools: c.Pools, Concurrency: c.Concurrency, Lease: c.Lease,
			Credentials: secrets, HTTP: c.WorkerHTTP, Egress: egress, EgressAllow: c.EgressAllow,
			Code: c.Code, Disk: c.Disk,
		}, c.Log)
		if err != nil {
			return err
		}
		s.Workers = append(s.Workers, p)
		s.stops = append(s.stops, stopProcess(p))
	}
	s.Conn, err = queue.Connect(ctx, queue.Config{URL: s.NATSURL, Name: "reprise-cli", Log: c.Log})
	if err != nil {
		return err
	}
	s.stops = append(s.stops, s.Conn.Close)
	return nil
}

// public decides where HTTP is served and under which URL people reach it.
func (s *Stack) public(c Config) (listen string, err error) {
	s.PublicURL = strings.TrimRight(c.PublicURL, "/")
	if c.HTTPAddr == "" {
		return "", nil
	}
	host, _, err := net.SplitHostPort(c.HTTPAddr)
	if err != nil {
		return "", fmt.Errorf("HTTP address %q: use host:port, such as 127.0.0.1:8484: %w", c.HTTPAddr, err)
	}
	// The URL must be known before links are made, and a server that runs is not
	// needed to find a free port.
	listener, err := net.Listen("tcp", c.HTTPAddr)
	if err != nil {
		return "", fmt.Errorf("HTTP address %s cannot be used: %w; choose another one, with port 0 for any that is free", c.HTTPAddr, err)
	}
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	if err := listener.Close(); err != nil {
		return "", fmt.Errorf("HTTP address %s: %w", c.HTTPAddr, err)
	}
	if s.PublicURL == "" {
		reached := host
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			reached = "127.0.0.1"
		}
		s.PublicURL = "http://" + net.JoinHostPort(reached, port)
	}
	return net.JoinHostPort(host, port), nil
}

func stopProcess(p *service.Process) func() {
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		p.Stop(ctx)
	}
}

// servers starts the embedded servers that are needed.
func (s *Stack) servers(c Config) error {
	dir := func(name string) (string, error) {
		if c.Dir == "" {
			return "", nil
		}
		path := filepath.Join(c.Dir, name)
		return path, os.MkdirAll(path, 0o700)
	}
	if s.RedisURL == "" {
		path, err := dir("redis")
		if err != nil {
			return fmt.Errorf("data directory: %w", err)
		}
		redis, err := embedded.StartRedis(path, embedded.RedisOptions{AppendOnly: c.Dir != "", TCP: true, Logger: c.Log})
		if err != nil {
			return err
		}
		s.stops = append(s.stops, redis.Shutdown)
		s.RedisURL, s.RedisKind = redis.URL, redis.Kind
	}
	if s.NATSURL == "" {
		path, err := dir("nats")
		if err != nil {
			return fmt.Errorf("data directory: %w", err)
		}
		nats, err := embedded.StartNATS(path, embedded.NATSOptions{Port: c.NATSPort, Logger: c.Log})
		if err != nil {
			return err
		}
		s.stops = append(s.stops, nats.Shutdown)
		s.NATSURL = nats.URL
	}
	return nil
}

// mock starts the mock LLM on a free loopback port.
func (s *Stack) mock(c Config, secrets *credentials.Store) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the mock LLM: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	server := mockllm.New(mockllm.Config{Script: c.Script, ThinkTime: c.ThinkTime})
	go func() { served <- server.ServeListener(ctx, listener) }()
	s.stops = append(s.stops, func() {
		cancel()
		if err := <-served; err != nil && !errors.Is(err, context.Canceled) {
			c.Log.Warn("mock LLM", zap.Error(err))
		}
	})
	s.MockURL = "http://" + listener.Addr().String() + "/v1"
	data := map[string]any{"apiKey": "mock", "url": s.MockURL}
	secrets.Add(MockCredentialID, "Mock LLM", "openAiApi", data)
	if c.Script != nil {
		secrets.Override("openAiApi", data)
	}
	return nil
}
