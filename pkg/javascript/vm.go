package javascript

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

const maxArgs = 6

// VM is one virtual machine. It belongs to one goroutine at a time.
type VM struct {
	module  api.Module
	mem     api.Memory
	fns     functions // called by Go between scripts
	hostFns functions // called by Go inside a host call: calls do not nest on one handle
	roots   roots
	limit   uint64
	key     any
	// Session is for what the caller wants to know when it gets the VM back as it left it; nil when the
	// VM is fresh.
	Session any
	grown   uint32 // bytes of memory that were in use when it was last reset

	// Of the call that runs.
	ctx       context.Context
	host      Host
	deadline  time.Time
	timeout   time.Duration
	hostError error
	expired   bool
	trap      error

	// broken VMs are not used again.
	broken bool
}

// function is an export of the engine.
type function struct{ fn api.Function }

// call returns the result, 0 after a trap (also one of an earlier call).
func (f function) call(vm *VM, args ...uint64) uint64 {
	if vm.trap != nil {
		return 0
	}
	var stack [maxArgs]uint64
	copy(stack[:], args)
	if err := f.fn.CallWithStack(vm.ctx, stack[:]); err != nil {
		vm.trap = &TrapError{Cause: err}
		vm.broken = true
		return 0
	}
	return stack[0]
}

type functions struct {
	initialize, init, memoryLimit, maxStack, interrupt, gcThreshold function
	malloc, free, freeValue, freeString                             function
	global, undefined, getProp, setProp, newHostFunction            function
	newString, newNumber, getString, isException, isString          function
	isUndefined, exception, eval, invoke, jobPending, runJob, runGC function
}

func bind(m api.Module) functions {
	get := func(name string) function { return function{m.ExportedFunction(name)} }
	return functions{
		initialize: get("_initialize"), init: get("qjs_init"), memoryLimit: get("qjs_set_memory_limit"),
		maxStack: get("qjs_set_max_stack_size"), interrupt: get("qjs_set_interrupt_handler"),
		gcThreshold: get("qjs_set_gc_threshold"),
		malloc:      get("wasm_malloc"), free: get("wasm_free"), freeValue: get("qjs_free_value"),
		freeString: get("qjs_free_cstring"),
		global:     get("qjs_get_global"), undefined: get("qjs_get_undefined"),
		getProp: get("qjs_get_prop_string"), setProp: get("qjs_set_prop_string"),
		newHostFunction: get("qjs_new_host_function"),
		newString:       get("qjs_new_string"), newNumber: get("qjs_new_number"), getString: get("qjs_get_string_len"),
		isException: get("qjs_is_exception"), isString: get("qjs_is_string"), isUndefined: get("qjs_is_undefined"),
		exception: get("qjs_get_exception"), eval: get("qjs_eval"), invoke: get("qjs_call"),
		jobPending: get("qjs_is_job_pending"), runJob: get("qjs_execute_pending_job"), runGC: get("qjs_run_gc"),
	}
}

// instantiate makes a VM with the memory of a new module.
func (im *Image) instantiate() (*VM, error) {
	wasm, compiled, err := im.runtime.engine()
	if err != nil {
		return nil, err
	}
	// The pages beyond the limit of JavaScript's allocator hold the engine's
	// own data and what fragmentation costs: a script meets its limit as an
	// error before it meets the end of the memory.
	limit := im.config.MemoryBytes + im.config.MemoryBytes/8 + 8<<20
	module, err := wasm.InstantiateModule(withMemory(context.Background(), limit), compiled,
		wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, fmt.Errorf("instantiate the JavaScript engine: %w", err)
	}
	return &VM{module: module, mem: module.Memory(), limit: im.config.MemoryBytes,
		fns: bind(module), hostFns: bind(module)}, nil
}

func (vm *VM) free() { _ = vm.module.Close(context.Background()) }

// reset makes the memory what it is in the snapshot.
func (vm *VM) reset(s *snapshot) {
	vm.mem.Write(0, s.memory)
	if size := vm.mem.Size(); size > vm.grown {
		// Memory cannot shrink, and the allocator of the snapshot does not know
		// these pages: they stay unused, but nothing shall lie in them.
		if extra, ok := vm.mem.Read(vm.grown, size-vm.grown); ok {
			clear(extra)
		}
		vm.grown = size
	}
	vm.roots = s.roots
}

func (vm *VM) begin(ctx context.Context, timeout time.Duration, host Host) {
	vm.ctx = context.WithValue(ctx, vmKey{}, vm)
	vm.host, vm.timeout, vm.deadline = host, timeout, time.Now().Add(timeout)
	vm.expired, vm.trap, vm.hostError = false, nil, nil
}

func (vm *VM) end() { vm.host = nil }

// overdue is asked by the engine every few thousand steps.
func (vm *VM) overdue() bool {
	if vm.expired || time.Now().After(vm.deadline) || vm.ctx.Err() != nil {
		vm.expired, vm.broken = true, true
	}
	return vm.expired
}

// Call calls the image's entry function with texts and returns the text it
// returns; ok is false when it returned something else. Errors are *Error (the
// function threw), *TimeoutError, *MemoryError, *TrapError or the context's.
func (vm *VM) Call(ctx context.Context, timeout time.Duration, host Host, args ...string) (reply string, ok bool, err error) {
	vm.begin(ctx, timeout, host)
	defer vm.end()
	return vm.enter(args...)
}

func (vm *VM) enter(args ...string) (string, bool, error) {
	if len(args) > maxArgs {
		return "", false, fmt.Errorf("javascript: %d arguments, at most %d", len(args), maxArgs)
	}
	var values [maxArgs]uint32
	for i, arg := range args {
		values[i] = vm.newString(vm.fns, arg)
		if vm.trap == nil && vm.fns.isException.call(vm, uint64(values[i])) != 0 {
			return "", false, vm.failure()
		}
		vm.mem.WriteUint32Le(vm.roots.argv+4*uint32(i), values[i])
	}
	result := vm.fns.invoke.call(vm, uint64(vm.roots.entry), uint64(vm.roots.undefined), uint64(len(args)), uint64(vm.roots.argv))
	for i := range args {
		vm.fns.freeValue.call(vm, uint64(values[i]))
	}
	if vm.trap != nil || vm.fns.isException.call(vm, result) != 0 {
		return "", false, vm.failure()
	}
	var reply string
	ok := vm.fns.isString.call(vm, result) != 0
	if ok {
		reply = vm.text(vm.fns, uint32(result))
	}
	vm.fns.freeValue.call(vm, result)
	if vm.trap != nil {
		return "", false, vm.failure()
	}
	return reply, ok, nil
}

func (vm *VM) eval(source Source) error {
	code, name := vm.write(source.Code), vm.write(source.Name)
	result := vm.fns.eval.call(vm, uint64(code.at), uint64(code.size), uint64(name.at), 0)
	code.free(vm)
	name.free(vm)
	if vm.trap != nil || vm.fns.isException.call(vm, result) != 0 {
		return fmt.Errorf("%s: %w", source.Name, vm.failure())
	}
	vm.fns.freeValue.call(vm, result)
	return nil
}

// failure says why the last call into the engine failed.
func (vm *VM) failure() error {
	if err := vm.ctx.Err(); err != nil && vm.expired {
		return err
	}
	if vm.expired {
		return &TimeoutError{After: vm.timeout}
	}
	if vm.trap != nil {
		return vm.trap
	}
	exception := uint32(vm.fns.exception.call(vm))
	failure := &Error{
		Name:    vm.property(exception, "name"),
		Message: vm.property(exception, "message"),
		Stack:   vm.property(exception, "stack"),
	}
	if failure.Name == "" && failure.Message == "" {
		failure.Message = vm.text(vm.fns, exception)
	}
	vm.fns.freeValue.call(vm, uint64(exception))
	if outOfMemory(failure) {
		vm.broken = true
		return &MemoryError{LimitBytes: vm.limit}
	}
	if vm.trap != nil {
		return vm.trap
	}
	return failure
}

func outOfMemory(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Name == "InternalError" && strings.Contains(e.Message, "out of memory")
}

func (vm *VM) property(object uint32, name string) string {
	key := vm.write(name)
	value := vm.fns.getProp.call(vm, uint64(object), uint64(key.at))
	key.free(vm)
	defer vm.fns.freeValue.call(vm, value)
	if vm.fns.isString.call(vm, value) == 0 {
		return ""
	}
	return vm.text(vm.fns, uint32(value))
}

// buffer is a zero-terminated text in the VM's memory.
type buffer struct {
	at, size uint32
	owned    bool
}

func (b buffer) free(vm *VM) {
	if b.owned {
		vm.fns.free.call(vm, uint64(b.at))
	}
}

func (vm *VM) write(text string) buffer { return vm.writeWith(vm.fns, text, false) }

func (vm *VM) writeWith(fns functions, text string, scratch bool) buffer {
	b := buffer{size: uint32(len(text))}
	if scratch && len(text) < scratchBytes {
		b.at = vm.roots.scratch
	} else {
		b.at, b.owned = uint32(fns.malloc.call(vm, uint64(len(text)+1))), true
		if b.at == 0 {
			if vm.trap == nil {
				vm.trap = &MemoryError{LimitBytes: vm.limit}
			}
			vm.broken = true
			return buffer{}
		}
	}
	vm.mem.WriteString(b.at, text)
	vm.mem.WriteByte(b.at+b.size, 0)
	return b
}

// newString makes a JavaScript string, which belongs to the caller.
func (vm *VM) newString(fns functions, text string) uint32 {
	b := vm.writeWith(fns, text, true)
	value := uint32(fns.newString.call(vm, uint64(b.at), uint64(b.size)))
	if b.owned {
		fns.free.call(vm, uint64(b.at))
	}
	return value
}

// text is a value converted to a string.
func (vm *VM) text(fns functions, value uint32) string {
	lengthAt := vm.roots.argv + 4*maxArgs // the word behind the arguments
	at := uint32(fns.getString.call(vm, uint64(value), uint64(lengthAt)))
	if at == 0 {
		return ""
	}
	raw, _ := vm.mem.Read(lengthAt, 4)
	bytes, ok := vm.mem.Read(at, binary.LittleEndian.Uint32(raw))
	if !ok {
		return ""
	}
	text := strings.ToValidUTF8(string(bytes), "\uFFFD")
	fns.freeString.call(vm, uint64(at))
	return text
}

func (vm *VM) hostString(value uint32) string { return vm.text(vm.hostFns, value) }
