// Package acceptance holds tests that run whole workflows through coordinators
// and workers, as the programs do, with links and mails that are answered over HTTP. They
// compare with what was asked for: runs that a real n8n recorded, faults that users of
// other systems reported (docs/user-reports.md), answers to bad input, time, and bytes
// written. It has no code of its own.
package acceptance
