#!/usr/bin/env bash
# Run a small system under load, read it with Prometheus as deploy/prometheus says, ask for all that
# deploy/grafana/reprise.json shows, and draw the dashboard with the answers.
#
#   scripts/dashboard.sh             checks, and draws docs/dashboard.svg
#   scripts/dashboard.sh PICTURE     draws another file
#
# It fails when a query of the dashboard fails or finds nothing, when an alert fires that should not,
# and when one does not that should. Everything runs on ports of its own on 127.0.0.1 and is ended.
# Needs redis-server, prometheus, promtool and python3; their own services need not run.
#
#   SECONDS_OF_LOAD=120   how long executions are submitted
#   BIN=DIR               take reprise, coordinator, worker and nats-server from there, and build nothing
#   KEEP=DIR              keep logs and Prometheus' data there, in a new directory
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case "${1:-}" in -*) sed -n '2,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//' >&2; exit 2 ;; esac
picture=${1:-docs/dashboard.svg}
load=${SECONDS_OF_LOAD:-120}
work=${KEEP:-$(mktemp -d "${TMPDIR:-/tmp}/reprise-dashboard.XXXXXX")}
mkdir -p "$work/bin"
declare -A pids=()
began=$(date +%s)

say() { printf '== %3ds  %s\n' $(($(date +%s) - began)) "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

cleanup() {
  local status=$?
  trap - EXIT INT TERM
  if [ ${#pids[@]} -gt 0 ]; then
    kill -9 "${pids[@]}" 2>/dev/null || true # nothing here is worth an orderly end
    wait "${pids[@]}" 2>/dev/null || true
  fi
  [ -n "${KEEP:-}" ] || rm -rf "$work"
  exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

for program in redis-server prometheus promtool python3 go; do
  command -v $program >/dev/null || die "$program is missing (Debian: redis-server, prometheus, python3)"
done
promtool check rules deploy/prometheus/alerts.yml

start() { # NAME COMMAND...
  local name=$1
  shift
  "$@" >>"$work/$name.log" 2>&1 &
  pids[$name]=$!
}

await() { # NAME URL
  local _
  for _ in $(seq 300); do
    python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=2)' "$2" 2>/dev/null && return
    kill -0 "${pids[$1]}" 2>/dev/null || break
    sleep 0.2
  done
  tail -5 "$work/$1.log" >&2
  die "$1 is not ready"
}

bin=${BIN:-$work/bin}
if [ -z "${BIN:-}" ]; then
  say "building"
  go build -o "$bin/" ./cmd/reprise ./cmd/coordinator ./cmd/worker github.com/nats-io/nats-server/v2
fi

read -ra port <<<"$(python3 -c '
import socket
open_ = [socket.create_server(("127.0.0.1", 0)) for _ in range(10)]
print(*(s.getsockname()[1] for s in open_))')"
nats=${port[0]} redis=${port[1]} model=${port[2]} prometheus=${port[3]} monitor=${port[4]}
declare -A metrics=([coordinator-1]=${port[5]} [coordinator-2]=${port[6]} [worker-1]=${port[7]} [worker-2]=${port[8]} [worker-3]=${port[9]})

# Prometheus reads the same jobs and rules, more often, and knows the processes by name.
cp deploy/prometheus/alerts.yml "$work/"
{
  printf 'global: {scrape_interval: 2s, evaluation_interval: 2s}\nrule_files: [alerts.yml]\nscrape_configs:\n'
  for job in coordinator worker; do
    printf '  - job_name: reprise-%s\n    static_configs:\n' $job
    for name in "${!metrics[@]}"; do
      [[ $name == "$job"-* ]] || continue
      printf '      - {targets: ["127.0.0.1:%s"], labels: {instance: %s}}\n' "${metrics[$name]}" "$name"
    done
  done
} >"$work/prometheus.yml"
promtool check config "$work/prometheus.yml" >/dev/null

cat >"$work/credentials.json" <<EOF
[{"id": "mock-llm", "name": "Mock LLM", "type": "openAiApi", "data": {"apiKey": "mock", "url": "http://127.0.0.1:$model/v1"}}]
EOF
cat >"$work/script.json" <<EOF
{"large": {"think_ms": 2500, "turns": [{"tool_calls": [{"name": "Calculator", "args": {"input": "6*7"}}]}, {"content": "{{results}}"}]},
 "broken": {"think_ms": 200, "fail_status": 400}}
EOF

worker() { # NAME
  REPRISE_METRICS_ADDR=127.0.0.1:${metrics[$1]} REPRISE_WORKER_CONCURRENCY=8 \
    REPRISE_CREDENTIALS_FILE=$work/credentials.json REPRISE_EGRESS_ALLOW=127.0.0.1:$model \
    start "$1" "$bin/worker"
}

say "starting NATS, Redis, a mock model, 2 coordinators, 3 workers and Prometheus"
export REPRISE_NATS_URL=nats://127.0.0.1:$nats REPRISE_REDIS_URL=redis://127.0.0.1:$redis/0
mkdir -p "$work/redis"
start redis redis-server --bind 127.0.0.1 --port "$redis" --dir "$work/redis" --save '' --appendonly yes
start nats "$bin/nats-server" --addr 127.0.0.1 --port "$nats" --http_port "$monitor" --jetstream --store_dir "$work/nats"
await nats "http://127.0.0.1:$monitor/healthz"
start model "$bin/reprise" mock-llm --addr "127.0.0.1:$model" --script "$work/script.json" --think 700ms
await model "http://127.0.0.1:$model/v1/models"
for name in coordinator-1 coordinator-2; do
  REPRISE_METRICS_ADDR=127.0.0.1:${metrics[$name]} start $name "$bin/coordinator"
done
for name in coordinator-1 coordinator-2; do await $name "http://127.0.0.1:${metrics[$name]}/readyz"; done
for name in worker-1 worker-2 worker-3; do worker $name; done
for name in worker-1 worker-2 worker-3; do await $name "http://127.0.0.1:${metrics[$name]}/readyz"; done
start prometheus prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/data" --web.listen-address="127.0.0.1:$prometheus"
await prometheus "http://127.0.0.1:$prometheus/-/ready"

say "submitting executions for ${load}s"
from=$(date +%s)
start load python3 scripts/dashboard/load.py "$nats" "http://127.0.0.1:$model/v1/models" "$load"
sleep $((load * 6 / 10))
{ kill -9 "${pids[worker-2]}" && wait "${pids[worker-2]}"; } 2>/dev/null || true
say "worker-2 killed"
sleep $((load * 15 / 100))
worker worker-2
say "worker-2 started again"
wait "${pids[load]}" || { cat "$work/load.log" >&2; die "the load was not taken"; }
unset "pids[load]"
cat "$work/load.log"
sleep 4 # two scrapes after the last submission

say "asking for what the dashboard shows"
python3 scripts/dashboard/draw.py "http://127.0.0.1:$prometheus" "$from" "$(date +%s)" deploy/grafana/reprise.json "$picture"
say "$picture drawn"
