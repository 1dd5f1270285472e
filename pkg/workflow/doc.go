// Package workflow is the workflow document: n8n's JSON file format, parsed
// leniently as it is found in the wild, indexed for graph look-ups and
// validated against a catalog of node types.
//
// A Workflow is immutable once parsed and may be shared by goroutines. The
// package imports nothing else of this project.
package workflow
