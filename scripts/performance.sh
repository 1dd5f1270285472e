#!/bin/sh
# Measures the scenarios of reprise bench (all, or those named) and puts their tables into
# docs/performance.md. Takes about 12 minutes of a machine that does nothing else.
set -eu
cd "$(dirname "$0")/.."
go build -o bin/reprise ./cmd/reprise
mkdir -p docs/performance
for scenario in ${*:-agent scale burst inflight steps tools latency finished cold waiting}; do
	echo "measuring $scenario" >&2
	# A report that was not finished does not replace one that was.
	bin/reprise bench --scenario "$scenario" --output json > "docs/performance/$scenario.json.new"
	mv "docs/performance/$scenario.json.new" "docs/performance/$scenario.json"
done
bin/reprise bench tables docs/performance.md
