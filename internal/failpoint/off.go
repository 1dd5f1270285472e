//go:build !failpoints

package failpoint

// Hit does nothing in ordinary builds.
func Hit(string) {}
