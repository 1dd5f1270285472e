// Package isolation runs the code of Code nodes in processes of their own: the
// running program, executed again. A script that breaks out of every other limit
// takes such a process with it and nothing else.
//
//	worker ── RunScript ──> child (QuickJS as WebAssembly in it)
//	       <─ host call ──
//	       ── answer ────>
//	       <─ result ─────
//
// JavaScript: a Pool keeps children that run one script at a time, each in a fresh
// virtual machine. They have the pipe to their parent and nothing more of it: no
// environment, no open files, no credentials. They ask for what a script reads (items,
// other nodes, HTTP) and the parent answers. Their memory and processor time
// are limited by the system; on Linux they can neither open sockets nor execute programs.
//
// A script has a deadline of its own, which its virtual machine watches. A child that
// does not answer graceTime after it is killed, as is one whose script was
// cancelled. A child that is gone fails its script alone, and the next one gets another.
//
// Python: each script gets a python3 process, which ends with it. See Python.
//
// Programs that use the package call Main first of all: this is where the children
// begin.
package isolation
