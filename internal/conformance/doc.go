// Package conformance holds the list of what the engine does as n8n does and what
// it does better on purpose (docs/conformance.md), and of the faults that users of
// other systems reported (docs/user-reports.md). Both are made from the tests that
// show it, wherever these are:
//
//   - A data file below testdata/conformance, or a Go test, says in its first lines
//     (or right above the function) which assertion it shows, "N 012: …" for one that
//     is as in n8n and "I 031 [7.34]: …" for one that is better, with the number of
//     n8n's quirk. "note: …" adds what we do instead, and why.
//   - A Go test named TestReport015…, one whose comment or subtest says "report 15",
//     and a data file with a line "# report 15" are about that report.
//
// The tests of this package fail when a number is without a test or a page is out of
// date; the pages are written by
//
//	go test ./internal/conformance -run TestTable -rewrite
//
// Assertions that no smaller test can show are tested here, on coordinators and
// embedded servers. The package has no code of its own.
package conformance

//go:generate go test . -run TestTable -rewrite
