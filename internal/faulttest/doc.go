// Package faulttest breaks everything executions run on, and checks that each
// ends with the right answer, with its effects once (or repeated under the same key
// where a process died with them in its hands), with nothing left behind, and
// without a restart by hand. docs/failure-contract.md links each promise to
// its test here. It has tests only.
//
//	go test ./internal/faulttest          what fits in about a minute
//	go test ./internal/faulttest -full    everything; make fault
//	make fault RUNS=20                    everything again and again, until a run fails
//	make fault RECORD=1                   adds the times to testdata/measured.json and the contract
//
// Tests are named after the public report of the fault that they repeat, where
// there is one. At the end the times are printed that recoveries took.
package faulttest

//go:generate go test . -run TestContractShowsWhatWasMeasured -update
