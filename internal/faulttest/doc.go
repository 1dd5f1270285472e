// Package faulttest breaks everything executions run on, and checks that each
// ends with the right answer, with its effects once (or repeated under the same key
// where a process died with them in its hands), with nothing left behind, and
// without a restart by hand. docs/failure-contract.md links each promise to
// its test here. It has tests only.
//
//	go test ./internal/faulttest          what fits in about a minute and a half
//	go test ./internal/faulttest -full    everything; make fault
//
// Tests are named after the public report of the fault that they repeat, where
// there is one. At the end the times are printed that recoveries took.
package faulttest
