package licences

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "write THIRD_PARTY_LICENSES.txt")

// Everything in the programs has a licence that is allowed, and is named in the file that goes with them.
func TestThirdPartyLicences(t *testing.T) {
	root := filepath.Join("..", "..")
	modules, err := Modules(t.Context(), root, "./cmd/...")
	require.NoError(t, err)
	require.Greater(t, len(modules), 20, "the modules were not found")
	files, err := Files(filepath.Join(root, "pkg"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for i := range files {
		files[i].Path = strings.TrimPrefix(files[i].Path, "../../")
	}
	notices, err := Notices(append(files, modules...))
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, Write(&text, notices))
	name := filepath.Join(root, "THIRD_PARTY_LICENSES.txt")
	if *rewrite {
		require.NoError(t, os.WriteFile(name, text.Bytes(), 0o644))
	}
	stored, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Contains(t, string(stored), "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION", "the texts themselves")
	require.True(t, bytes.Equal(text.Bytes(), stored), "THIRD_PARTY_LICENSES.txt is out of date: go generate ./internal/licences, and look at what it changes")
}

// Files that are embedded and come from others lie in directories named assets: each has its licence beside it.
func TestAssetsHaveLicences(t *testing.T) {
	found := 0
	for _, pattern := range []string{"../../pkg/*/assets/*", "../../pkg/*/*/assets/*", "../../internal/*/assets/*"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range paths {
			if strings.HasSuffix(path, ".md") || strings.HasSuffix(path, ".LICENSE") {
				continue
			}
			found++
			base, _, _ := strings.Cut(filepath.Base(path), ".")
			licences, err := filepath.Glob(filepath.Join(filepath.Dir(path), base+"*.LICENSE"))
			require.NoError(t, err)
			require.NotEmpty(t, licences, "%s has no licence beside it", path)
		}
	}
	require.NotZero(t, found)
}

func TestIdentify(t *testing.T) {
	const mit = "Permission is hereby granted, free of charge, to any person …\n  The above copyright notice and this\npermission notice shall be included in all copies"
	for text, want := range map[string][]string{
		mit: {"MIT"},
		"MIT License\n" + mit + "\nApache License\nVersion 2.0, January 2004 … 3. Grant of Patent License.": {"Apache-2.0", "MIT"},
		mit + "\nThe Commons Clause restricts sale":                                                         nil,
		"GNU LESSER GENERAL PUBLIC LICENSE Version 3":                                                       nil,
		"GNU General Public License … " + mit:                                                               nil,
		"Mozilla Public License Version 2.0 … Covered Software … GNU General Public License, Version 2.0":   {"MPL-2.0"},
		"All rights reserved.": nil,
		"":                     nil,
	} {
		require.Equal(t, want, Identify(text), text)
	}
}

// A module without a licence, or with one that is not allowed, is named.
func TestWhatIsNotAllowedIsNamed(t *testing.T) {
	good, bad, none := t.TempDir(), t.TempDir(), t.TempDir()
	write := func(dir, name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write(good, "LICENSE", "Permission to use, copy, modify, and distribute this software for any purpose with or without fee is hereby granted")
	write(bad, "COPYING", "GNU AFFERO GENERAL PUBLIC LICENSE")
	write(none, "license_test.go", "package none")
	notices, err := Notices([]Module{{"a/good", good}, {"a/bad", bad}, {"a/none", none}, {"b/good", good}})
	require.ErrorContains(t, err, "module a/bad has no licence")
	require.ErrorContains(t, err, "module a/none has no licence")
	require.NotContains(t, err.Error(), "good")
	require.Equal(t, []string{"ISC"}, notices[0].Licences)
	require.Equal(t, []string{"a/good", "b/good"}, notices[0].Modules)
}
