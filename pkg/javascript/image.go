package javascript

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"
)

const (
	pageBytes      = 64 << 10
	maxMemoryBytes = 1 << 30
	stackBytes     = 512 << 10
	// gcThreshold: a collection costs a walk over the heap, and short scripts
	// never need one.
	gcThreshold = 16 << 20
	// discardBytes is the growth after which a VM is not worth keeping.
	discardBytes = 16 << 20
	scratchBytes = 16 << 10
)

// Source is a named piece of JavaScript.
type Source struct{ Name, Code string }

// ImageConfig says what an Image starts from and what its VMs may use.
type ImageConfig struct {
	// Sources are evaluated in order, after Luxon and the standard library, when
	// the image is made. The last should leave a function named by Entry.
	Sources []Source
	// Entry is the global function that Call calls.
	Entry string
	// MemoryBytes bounds what a script may allocate. 0 is 64 MB.
	MemoryBytes uint64
}

// Image is a prepared virtual machine from which VMs are made. It is safe for
// concurrent use; it is made on first use.
type Image struct {
	runtime *Runtime
	config  ImageConfig
	slots   chan struct{}

	mu     sync.Mutex
	frozen *snapshot
	idle   []*VM // least recently used first
	closed bool
}

// snapshot is the memory of a VM at rest. The engine keeps nothing outside of
// it: its only mutable global is the stack pointer, which is at its start.
type snapshot struct {
	memory []byte
	roots  roots
}

// roots are the values Go holds in the VM, as pointers into its memory.
type roots struct {
	entry, undefined uint32
	scratch, argv    uint32
}

// NewImage describes an image. Nothing runs yet.
func (r *Runtime) NewImage(config ImageConfig) *Image {
	if config.MemoryBytes == 0 {
		config.MemoryBytes = 64 << 20
	}
	image := &Image{runtime: r, config: config, slots: make(chan struct{}, r.config.VMs)}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.images = append(r.images, image)
	return image
}

// Acquire returns a VM that is the caller's until Release. A VM that was last
// used under the same key (compared with ==, nil never matches) comes as it was
// left and reused is true; any other is as fresh as the image.
func (im *Image) Acquire(ctx context.Context, key any) (vm *VM, reused bool, err error) {
	select {
	case im.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	defer func() {
		if err != nil {
			<-im.slots
		}
	}()
	im.mu.Lock()
	if im.closed {
		im.mu.Unlock()
		return nil, false, ErrClosed
	}
	for i := len(im.idle) - 1; i >= 0; i-- {
		if key != nil && im.idle[i].key == key {
			vm = im.take(i)
			im.mu.Unlock()
			return vm, true, nil
		}
	}
	if len(im.idle) > 0 {
		vm = im.take(0)
		im.mu.Unlock()
		vm.key, vm.Session = key, nil
		vm.reset(im.frozen)
		return vm, false, nil
	}
	err = im.freeze()
	im.mu.Unlock()
	if err != nil {
		return nil, false, err
	}
	if vm, err = im.thaw(); err != nil {
		return nil, false, err
	}
	vm.key = key
	return vm, false, nil
}

func (im *Image) take(i int) *VM {
	vm := im.idle[i]
	im.idle = append(im.idle[:i], im.idle[i+1:]...)
	return vm
}

// Forget keeps the VM from being reused as it is by whoever has its key.
func (vm *VM) Forget() { vm.key = nil }

// Release gives a VM back. One that failed or grew is freed.
func (im *Image) Release(vm *VM) {
	vm.host, vm.ctx = nil, nil
	im.mu.Lock()
	keep := !im.closed && !vm.broken && int(vm.mem.Size()) < len(im.frozen.memory)+discardBytes
	if keep {
		im.idle = append(im.idle, vm)
	}
	im.mu.Unlock()
	if !keep {
		vm.free()
	}
	<-im.slots
}

func (im *Image) drop() {
	im.mu.Lock()
	defer im.mu.Unlock()
	im.closed = true
	for _, vm := range im.idle {
		vm.free()
	}
	im.idle = nil
}

// freeze makes the snapshot; im.mu is held.
func (im *Image) freeze() error {
	if im.frozen != nil {
		return nil
	}
	vm, err := im.instantiate()
	if err != nil {
		return err
	}
	defer vm.free()
	if err := vm.boot(im.config); err != nil {
		return fmt.Errorf("prepare the JavaScript engine: %w", err)
	}
	memory, _ := vm.mem.Read(0, vm.mem.Size())
	im.frozen = &snapshot{memory: append([]byte(nil), memory...), roots: vm.roots}
	return nil
}

// thaw makes a VM from the snapshot.
func (im *Image) thaw() (*VM, error) {
	vm, err := im.instantiate()
	if err != nil {
		return nil, err
	}
	if missing := len(im.frozen.memory) - int(vm.mem.Size()); missing > 0 {
		if _, ok := vm.mem.Grow(uint32(missing / pageBytes)); !ok {
			vm.free()
			return nil, &MemoryError{LimitBytes: im.config.MemoryBytes}
		}
	}
	vm.grown = vm.mem.Size()
	vm.reset(im.frozen)
	return vm, nil
}

// boot prepares a VM that has just been instantiated.
func (vm *VM) boot(config ImageConfig) error {
	ctx := context.Background()
	vm.begin(ctx, time.Minute, nil)
	defer vm.end()
	vm.fns.initialize.call(vm)
	if status := vm.fns.init.call(vm); vm.trap == nil && status != 0 {
		return fmt.Errorf("qjs_init answers %d", status)
	}
	vm.fns.memoryLimit.call(vm, config.MemoryBytes)
	vm.fns.maxStack.call(vm, stackBytes)
	vm.fns.interrupt.call(vm, 1)
	vm.fns.gcThreshold.call(vm, gcThreshold)
	if vm.trap != nil {
		return vm.trap
	}
	vm.roots.undefined = uint32(vm.fns.undefined.call(vm))
	vm.roots.scratch = uint32(vm.fns.malloc.call(vm, scratchBytes))
	vm.roots.argv = uint32(vm.fns.malloc.call(vm, 4*(maxArgs+1)))
	global := vm.fns.global.call(vm)
	name := vm.write("__host")
	host := vm.fns.newHostFunction.call(vm, uint64(name.at), uint64(name.size), 2)
	vm.fns.setProp.call(vm, global, uint64(name.at), host)
	name.free(vm)
	sources := append([]Source{{"luxon.js", "globalThis.luxon = (() => {" + luxonSource + "\nreturn luxon })()"}, {"standard.js", standardSource}, {"intl.js", intlSource}}, config.Sources...)
	for _, source := range sources {
		if err := vm.eval(source); err != nil {
			return err
		}
	}
	name = vm.write(config.Entry)
	vm.roots.entry = uint32(vm.fns.getProp.call(vm, global, uint64(name.at)))
	name.free(vm)
	// Scripts shall not find what only the sources above were meant to use.
	hide := "delete this.__host; delete this.__standard; delete this[" + strconv.Quote(config.Entry) + "]"
	if err := vm.eval(Source{Name: "hide.js", Code: hide}); err != nil {
		return err
	}
	vm.fns.runGC.call(vm)
	if vm.trap != nil {
		return vm.trap
	}
	return nil
}
