#!/usr/bin/env bash
# Check the source without running it: format, vet, lint, licences, generated
# files and import rules. Goes on after a failure, so that one run shows all of them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=0
check() {
  printf '== %s\n' "$1"
  shift
  if ! "$@"; then failed=1; fi
}

# The files that git knows or would add; bin/ and the like are left out.
go_files() { git ls-files -z --cached --others --exclude-standard -- '*.go'; }

formatted() {
  local bad
  bad=$(go_files | while IFS= read -r -d '' f; do [ ! -e "$f" ] || printf '%s\0' "$f"; done | xargs -0 -r gofmt -l) || return 1
  [ -z "$bad" ] || { printf 'not formatted, run gofmt -w:\n%s\n' "$bad"; return 1; }
}

# What go generate changes was out of date. The comparison is with the work
# tree, not with the last commit, so that uncommitted work does not count.
state() { go_files | sort -z | while IFS= read -r -d '' f; do [ ! -e "$f" ] || cksum "$f"; done; git diff; }
generated() {
  if ! git grep -q --untracked '^//go:generate ' -- '*.go'; then echo "nothing is generated"; return 0; fi
  local before after
  before=$(state)
  go generate ./... || return 1
  after=$(state)
  [ "$before" = "$after" ] || { echo "go generate changed files: commit what it wrote"; return 1; }
}

lint() {
  if command -v golangci-lint >/dev/null; then golangci-lint run ./...; else echo "golangci-lint is not installed, left out"; fi
}

check "gofmt" formatted
check "go vet" go vet ./...
check "import rules" go test ./internal/arch
check "licences" go test ./internal/licences
check "go generate" generated
check "golangci-lint" lint
exit "$failed"
