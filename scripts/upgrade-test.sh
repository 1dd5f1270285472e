#!/usr/bin/env bash
# Upgrade a system under load from an old version to this one and back, process by process, and
# expect every execution to end well with its effects once (internal/faulttest, TestRollingUpgrade).
#
#   OLD=v1.2.0 scripts/upgrade-test.sh    a tag, branch or commit; the default is the last release tag,
#                                         and before there is one the commit in scripts/upgrade-from
#   RUNS=5                                how many times
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

old=${OLD:-$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || grep -v '^#' scripts/upgrade-from)}
commit=$(git rev-parse --verify --quiet "$old^{commit}") || {
  echo "error: there is no $old in this clone: name another with OLD=, or fetch its history (git fetch --unshallow --tags)" >&2
  exit 1
}
work=$(mktemp -d "${TMPDIR:-/tmp}/reprise-upgrade.XXXXXX")
trap 'rm -rf "$work"' EXIT

# The old programs are built from their own source, go.mod included, and know nothing of this tree.
mkdir -p "$work/source" "$work/old" "$work/new"
git archive "$commit" | tar -x -C "$work/source"
echo "== building $(git log -1 --format='%h (%cs, %s)' "$commit")"
(cd "$work/source" && go build -tags failpoints -ldflags '-s -w' -o "$work/old" ./cmd/coordinator ./cmd/worker)
echo "== building this tree"
go build -tags failpoints -ldflags '-s -w' -o "$work/new" ./cmd/coordinator ./cmd/worker
go test -c -o "$work/fault.test" ./internal/faulttest

export CLUSTER_PROGRAMS=$work/new
cd internal/faulttest
"$work/fault.test" -test.run '^TestRollingUpgrade$' -test.count "${RUNS:-1}" -test.timeout 30m -test.v -old "$work/old"
