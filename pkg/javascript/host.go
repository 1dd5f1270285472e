package javascript

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// Host answers what a script asks for. ok false gives the script undefined; an
// error is thrown in the script. It is called on the goroutine of Call.
type Host func(op, arg string) (reply string, ok bool, err error)

type vmKey struct{}

func current(ctx context.Context) *VM { return ctx.Value(vmKey{}).(*VM) }

// instantiateHost provides the imports of the engine: the host call, the
// interrupt, and as little of WASI as its C library needs (a clock, no files).
func instantiateHost(ctx context.Context, wasm wazero.Runtime) error {
	env := wasm.NewHostModuleBuilder("env")
	export := func(b wazero.HostModuleBuilder, name string, f any) {
		b.NewFunctionBuilder().WithFunc(f).Export(name)
	}
	export(env, "host_call", func(ctx context.Context, _ api.Module, _, _, _, argc, argv uint32) uint32 {
		return current(ctx).hostCall(argc, argv)
	})
	export(env, "host_interrupt", func(ctx context.Context) uint32 {
		if current(ctx).overdue() {
			return 1
		}
		return 0
	})
	export(env, "host_promise_rejection", func(_, _, _ uint32) {})
	export(env, "host_module_normalize", func(_, _ uint32) uint32 { return 0 })
	export(env, "host_module_load", func(_, _ uint32) uint32 { return 0 })
	export(env, "host_get_timezone_offset", func(_, _ uint32) uint32 { return 0 })
	if _, err := env.Instantiate(ctx); err != nil {
		return fmt.Errorf("host functions: %w", err)
	}

	const success, badFile, unsupported = 0, 8, 52
	wasi := wasm.NewHostModuleBuilder("wasi_snapshot_preview1")
	export(wasi, "clock_time_get", func(_ context.Context, m api.Module, _ uint32, _ uint64, out uint32) uint32 {
		m.Memory().WriteUint64Le(out, uint64(time.Now().UnixNano()))
		return success
	})
	export(wasi, "random_get", func(_ context.Context, m api.Module, at, size uint32) uint32 {
		if b, ok := m.Memory().Read(at, size); ok {
			_, _ = rand.Read(b)
		}
		return success
	})
	export(wasi, "fd_close", func(uint32) uint32 { return unsupported })
	export(wasi, "fd_fdstat_get", func(_, _ uint32) uint32 { return badFile })
	export(wasi, "fd_seek", func(_ uint32, _ uint64, _, _ uint32) uint32 { return unsupported })
	export(wasi, "fd_write", func(_, _, _, _ uint32) uint32 { return badFile })
	if _, err := wasi.Instantiate(ctx); err != nil {
		return fmt.Errorf("wasi: %w", err)
	}
	return nil
}

// hostCall serves __host(op, arg): a text, undefined, or the number 0 when the
// call failed; __host("error") then tells why.
func (vm *VM) hostCall(argc, argv uint32) uint32 {
	var args [2]string
	for i := range min(int(argc), len(args)) {
		value, _ := vm.mem.ReadUint32Le(argv + 4*uint32(i))
		args[i] = vm.hostString(value)
	}
	reply, ok, err := vm.answer(args[0], args[1])
	switch {
	case err != nil:
		vm.hostError = err
		return uint32(vm.hostFns.newNumber.call(vm, api.EncodeF64(0)))
	case !ok:
		return uint32(vm.hostFns.undefined.call(vm))
	}
	return vm.newString(vm.hostFns, reply)
}

func (vm *VM) answer(op, arg string) (string, bool, error) {
	switch op {
	case "error":
		if vm.hostError == nil {
			return "", false, nil
		}
		message := vm.hostError.Error()
		vm.hostError = nil
		return message, true, nil
	case "random":
		n, err := strconv.Atoi(arg)
		if err != nil || n < 0 || n > 65536 {
			return "", false, fmt.Errorf("random values for %q bytes", arg)
		}
		b := make([]byte, n)
		_, _ = rand.Read(b)
		return base64.StdEncoding.EncodeToString(b), true, nil
	}
	if standard := standardCalls[op]; standard != nil {
		reply, ok := standard(arg)
		return reply, ok, nil
	}
	if vm.host == nil {
		return "", false, nil
	}
	return vm.host(op, arg)
}
