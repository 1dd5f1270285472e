#!/usr/bin/env bash
# Look for known vulnerabilities in what the programs call (govulncheck). Its database is on the
# internet: without it, or without the program, a line says that nothing was looked for.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

command -v govulncheck >/dev/null || {
  echo "govulncheck is not installed, left out (go install golang.org/x/vuln/cmd/govulncheck@latest)"
  exit 0
}
status=0
out=$(govulncheck ./cmd/... 2>&1) || status=$?
if [ $status != 0 ] && grep -q 'fetching vulnerabilities' <<<"$out"; then
  echo "the database of vulnerabilities does not answer, left out: $(grep -m 1 'fetching vulnerabilities' <<<"$out")"
  exit 0
fi
printf '%s\n' "$out"
exit $status
