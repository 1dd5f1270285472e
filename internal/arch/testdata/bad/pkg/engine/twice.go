// Package engine is described twice.
package engine
