// Package acceptance holds tests that run whole workflows through coordinators
// and workers, as the programs do, and compare with what was asked for: runs that
// a real n8n recorded, answers to bad input, time, and bytes written. It has no code
// of its own.
package acceptance
