package telemetry_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The fields of the services' logs have one name each, which the page lists: all that are
// used in more than two places, and none that is another's name written otherwise.
func TestFieldsOfLogsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	_, logs, ok := strings.Cut(string(text), "## Logs")
	require.True(t, ok)
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]+) \\|").FindAllStringSubmatch(logs, -1) {
		for _, name := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[1], -1) {
			documented[name[1]] = true
		}
	}
	require.True(t, documented["execution_id"] && documented["run_index"])
	otherwise := regexp.MustCompile(`^(execution|executionID|exec_id|id|job_id|workflow_name|node_name|nodeName|run|runIndex|try|worker_name|worker_id|coordinator_id|pool_name|err)$`)
	field := regexp.MustCompile(`zap\.(?:String|Int|Int64|Uint64|Bool|Duration|Strings|Stringer|Any)\("([^"]+)"`)
	used := map[string]int{}
	for _, root := range []string{"../coordinator", "../worker", "../runner", "../service", "../api", "../telemetry", "../../pkg/state", "../../pkg/queue"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			for _, m := range field.FindAllStringSubmatch(string(source), -1) {
				require.Regexp(t, `^[a-z][a-z_]*$`, m[1], path)
				require.NotRegexp(t, otherwise, m[1], path)
				used[m[1]]++
			}
			return err
		}))
	}
	require.Greater(t, used["execution_id"], 20, "the search finds them")
	for name, n := range used {
		require.True(t, n <= 2 || documented[name], "%s is used %d times and not in docs/operations.md", name, n)
	}
}
