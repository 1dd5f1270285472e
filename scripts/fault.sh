#!/usr/bin/env bash
# Run the fault tests RUNS times (1), each time the same programs, and stop at the first
# run that fails. FAULT is a regexp of tests, SHORT=1 takes the short form, RECORD=1 adds the times
# to what the failure contract says. A run of several prints its time; what a failed one said
# is printed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

runs=${RUNS:-1}
args=(-test.v -test.timeout 30m -test.run "${FAULT:-.}")
[ -n "${SHORT:-}" ] || args+=(-full)
[ -z "${RECORD:-}" ] || args+=(-record)

built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
go build -tags failpoints -ldflags '-s -w' -o "$built" ./cmd/coordinator ./cmd/worker
go test -c -o "$built/fault.test" ./internal/faulttest
export CLUSTER_PROGRAMS=$built

cd internal/faulttest
if [ "$runs" = 1 ]; then
  "$built/fault.test" "${args[@]}"
  exit
fi
for run in $(seq "$runs"); do
  start=$SECONDS
  if "$built/fault.test" "${args[@]}" >"$built/log" 2>&1; then
    printf 'run %d of %d: ok, %d s\n' "$run" "$runs" $((SECONDS - start))
  else
    printf 'run %d of %d: failed after %d s\n' "$run" "$runs" $((SECONDS - start))
    kept=$(mktemp /tmp/fault-XXXXXX.log)
    cp "$built/log" "$kept"
    grep -E '^ *--- FAIL' "$built/log" || true
    tail -n 60 "$built/log"
    echo "all it said is in $kept"
    exit 1
  fi
done
