package javascript

import (
	"context"
	_ "embed" // the engine
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
)

// engineWasm is QuickJS-ng 0.18.0 as built for npm's quickjs-wasi 3.7.0.
//
//go:embed assets/quickjs.wasm
var engineWasm []byte

// Config of a Runtime. The zero value is usable.
type Config struct {
	// CacheDir keeps the engine's machine code between processes. "" is a
	// directory of ours in the user's cache directory; NoCache keeps it in memory.
	// A directory that cannot be written is not an error.
	CacheDir string
	// VMs is the most VMs of one Image that exist at a time; callers beyond it
	// wait. 0 is twice GOMAXPROCS.
	VMs int
}

// NoCache as Config.CacheDir keeps nothing on disk.
const NoCache = "-"

// Runtime is the compiled engine. It is safe for concurrent use and compiles
// on first use.
type Runtime struct {
	config Config

	mu       sync.Mutex
	closed   bool
	cache    wazero.CompilationCache
	wasm     wazero.Runtime
	compiled wazero.CompiledModule
	images   []*Image
}

// New returns a runtime; nothing is compiled yet.
func New(config Config) *Runtime {
	if config.VMs <= 0 {
		config.VMs = 2 * runtime.GOMAXPROCS(0)
	}
	return &Runtime{config: config}
}

// Close frees every VM and the compiled engine. Scripts must not be running.
// A second call is harmless.
func (r *Runtime) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, image := range r.images {
		image.drop()
	}
	r.images = nil
	if r.wasm == nil {
		return nil
	}
	ctx := context.Background()
	err := r.wasm.Close(ctx)
	if cacheErr := r.cache.Close(ctx); err == nil {
		err = cacheErr
	}
	r.wasm, r.compiled, r.cache = nil, nil, nil
	return err
}

// engine compiles the engine unless that was done.
func (r *Runtime) engine() (wazero.Runtime, wazero.CompiledModule, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, nil, ErrClosed
	}
	if r.compiled != nil {
		return r.wasm, r.compiled, nil
	}
	ctx := context.Background()
	cache := r.openCache()
	wasm := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().
		WithCompilationCache(cache).
		WithMemoryLimitPages(maxMemoryBytes/pageBytes))
	compiled, err := compile(ctx, wasm)
	if err != nil {
		_ = wasm.Close(ctx)
		_ = cache.Close(ctx)
		return nil, nil, fmt.Errorf("compile the JavaScript engine: %w", err)
	}
	r.cache, r.wasm, r.compiled = cache, wasm, compiled
	return wasm, compiled, nil
}

func compile(ctx context.Context, wasm wazero.Runtime) (wazero.CompiledModule, error) {
	if err := instantiateHost(ctx, wasm); err != nil {
		return nil, err
	}
	return wasm.CompileModule(ctx, engineWasm)
}

func (r *Runtime) openCache() wazero.CompilationCache {
	dir := r.config.CacheDir
	if dir == "" {
		if base, err := os.UserCacheDir(); err == nil {
			dir = filepath.Join(base, "reprise", "wasm")
		}
	}
	if dir != "" && dir != NoCache && os.MkdirAll(dir, 0o700) == nil {
		if cache, err := wazero.NewCompilationCacheWithDir(dir); err == nil {
			return cache
		}
	}
	return wazero.NewCompilationCache()
}

// withMemory makes modules instantiated under ctx use our memory.
func withMemory(ctx context.Context, limit uint64) context.Context {
	return experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(
		func(_, _ uint64) experimental.LinearMemory { return newMemory(limit) }))
}
