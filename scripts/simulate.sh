#!/usr/bin/env bash
# Run the deterministic simulation over many seeds, one process per processor.
#
#   SEEDS=1000 START=1 scripts/simulate.sh
#   EXECUTIONS=100000 scripts/simulate.sh            as many seeds as it takes for so many executions
#   SEEDS=1 START=42 TRACE=1 scripts/simulate.sh     one seed, with every event
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seeds=${SEEDS:-1000} start=${START:-1} trace=${TRACE:-} executions=${EXECUTIONS:-}
processes=$(getconf _NPROCESSORS_ONLN)
[ "$seeds" -ge "$processes" ] || processes=$seeds
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go test -c -o "$dir/simulation.test" ./internal/simulation
cd internal/simulation
arguments=(-test.run '^TestSimulation$' -test.v -test.timeout 2h)
[ -z "$trace" ] || arguments+=(-trace)

pids=()
for ((i = 0; i < processes; i++)); do
  share=$(((seeds - i + processes - 1) / processes))
  amount=(-seeds "$share")
  [ -z "$executions" ] || amount=(-atleast $(((executions + processes - 1) / processes)))
  "$dir/simulation.test" "${arguments[@]}" -start $((start + i)) -stride "$processes" "${amount[@]}" </dev/null &
  pids+=($!)
done
failed=0
for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
exit "$failed"
