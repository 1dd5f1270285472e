// Package javascript runs untrusted JavaScript: QuickJS-ng compiled to
// WebAssembly, executed by wazero inside this process, without cgo.
//
// A script sees nothing of the process but what its Host answers. It has a
// memory limit, a stack limit and a deadline, and may not load modules.
//
// An Image is a virtual machine that was prepared once (Luxon, a standard
// library, sources of the caller) and then frozen as a copy of its memory. VMs
// are made from that copy and reset to it between two executions (some 0.1 ms),
// so that nothing one script did to its globals or prototypes is seen by the
// next. A VM that ran out of memory or time, that trapped or that grew large is
// thrown away instead.
//
// Nothing is compiled before the first script runs. The machine code of the
// engine is kept in the user's cache directory when that is writable: a process
// then starts in some 30 ms where compiling takes 400.
package javascript
