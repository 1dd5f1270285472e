#!/usr/bin/env bash
# Run the Go tests against a real redis-server; NATS runs inside the tests.
#
#   scripts/test.sh                          all packages
#   scripts/test.sh -run Resume ./pkg/...    any arguments of go test
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '== %s\n' "$*"; }

install_redis() {
  local as_root=()
  if ! command -v apt-get >/dev/null; then
    echo "redis-server is missing and there is no apt-get: install Redis 7 or later (macOS: brew install redis) and run this again" >&2
    return 1
  fi
  if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "redis-server is missing: run 'apt-get install redis-server' as root, then run this again" >&2
      return 1
    fi
    as_root=(sudo)
  fi
  say "redis-server is missing, installing it with apt-get"
  "${as_root[@]}" apt-get update -qq || say "apt-get update failed, trying with the package lists that are there"
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq redis-server; then
    echo "redis-server could not be installed with apt-get: install Redis 7 or later by hand and run this again" >&2
    return 1
  fi
}

command -v go >/dev/null || { echo "go is missing: install Go 1.26 or later (https://go.dev/dl/)" >&2; exit 1; }
command -v redis-server >/dev/null || install_redis
say "$(go version)"
say "$(redis-server --version | cut -d' ' -f1-3)"

# The timeout is for each package; a hanging test then prints its goroutines.
run() {
  say "go test -timeout 8m $*"
  go test -timeout 8m "$@"
}
if [ $# != 0 ]; then
  run "$@"
  exit
fi
# What kills and pauses real processes, and asks how long they take to recover, runs
# after the rest and one package at a time.
alone='/internal/(chaos|crashtest|faulttest)$'
packages=$(go list ./...)
status=0
# shellcheck disable=SC2046 # a list of packages
run $(grep -Ev "$alone" <<<"$packages") || status=$?
# shellcheck disable=SC2046
run -p 1 $(grep -E "$alone" <<<"$packages") || status=$?
exit $status
