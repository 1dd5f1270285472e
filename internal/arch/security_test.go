package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every threat that docs/security.md names has a test, which exists.
func TestSecurityNamesItsTests(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "| threat | defence | test |\n|---|---|---|\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	link := regexp.MustCompile(`\[(Test\w+)\]\(\.\./([^)]+)\)`)
	rows := 0
	for row := range strings.Lines(table) {
		links := link.FindAllStringSubmatch(row, -1)
		require.NotEmpty(t, links, "a row without a test: %s", row)
		for _, l := range links {
			source, err := os.ReadFile(filepath.Join(root, l[2]))
			require.NoError(t, err)
			require.Contains(t, string(source), "func "+l[1]+"(", l[2])
		}
		rows++
	}
	require.Greater(t, rows, 20)
}
