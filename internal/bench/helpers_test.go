package bench

import (
	"fmt"
	"strings"
	"testing"
)

// commandCalls reads how often a command was called from INFO commandstats.
func commandCalls(t *testing.T, info, command string) int {
	t.Helper()
	for line := range strings.SplitSeq(info, "\n") {
		if rest, ok := strings.CutPrefix(line, "cmdstat_"+command+":calls="); ok {
			var n int
			if _, err := fmt.Sscanf(rest, "%d", &n); err != nil {
				t.Fatalf("commandstats %q: %v", line, err)
			}
			return n
		}
	}
	return 0
}
