package faulttest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every row of docs/failure-contract.md names a test that exists, and every test of this
// package that proves a promise is named there.
func TestContractNamesItsTests(t *testing.T) {
	t.Parallel()
	if *recording {
		return // its tables are written when all tests are over
	}
	text, err := os.ReadFile(contractFile)
	require.NoError(t, err)
	links := regexp.MustCompile(`\[(Test\w+)\]\(\.\./([^)]+)\)`).FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, links)
	named := map[string]bool{}
	for _, link := range links {
		source, err := os.ReadFile(filepath.Join("..", "..", link[2]))
		require.NoError(t, err)
		require.Contains(t, string(source), "func "+link[1]+"(", "%s", link[2])
		named[link[1]] = true
	}
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, found := range regexp.MustCompile(`(?m)^func (Test\w+)\(t `).FindAllStringSubmatch(string(source), -1) {
			switch name := found[1]; name {
			case "TestContractNamesItsTests", "TestContractShowsWhatWasMeasured", "TestModelRefusesALostUpdate", "TestModelRemembersEightCommits": // these test the tests
			default:
				require.True(t, named[name], "%s of %s is not in the contract", name, file)
			}
		}
	}
	for row := range strings.Lines(string(text)) {
		if strings.HasPrefix(row, "| ") && !strings.HasPrefix(row, "| fault") {
			require.Contains(t, row, "](../", "a row without a test: %s", row)
		}
	}
}
