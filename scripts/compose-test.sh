#!/usr/bin/env bash
# Bring docker-compose.yml up, kill its containers under load, and expect every execution to end well.
#
#   scripts/compose-test.sh              the plain stack
#   scripts/compose-test.sh --hardened   with docker-compose.hardened.yml on top
#
# It takes the Docker that runs, else starts one of its own and ends it afterwards (as root; what it
# stores stays in REPRISE_COMPOSE_CACHE for the next run). What cannot be pulled is made here. All
# containers, networks and volumes have names of their own and are removed in any case.
#
#   EXECUTIONS=200      how many are submitted
#   LIMIT=300           seconds that the stack may take, from its start to the last end
#   KEEP=1              leave the stack and the Docker running, to look at
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

hardened=
case "${1:-}" in
  --hardened) hardened=1 ;;
  '') ;;
  *) sed -n '2,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//' >&2; exit 2 ;;
esac
executions=${EXECUTIONS:-200}
cache=${REPRISE_COMPOSE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/reprise-compose-test}
compose_version=v2.39.4
work=$(mktemp -d "${TMPDIR:-/tmp}/reprise-compose.XXXXXX")
project=reprise-test-$$
dockerd_pid='' watchdog=''
jobs_running=()
started=$SECONDS

say() { printf '== %3ds  %s\n' $((SECONDS - started)) "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

need_package() { # PACKAGE [PROGRAM]
  local program=${2:-$1}
  { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; } ||
    die "$program is missing: install it (Debian: apt-get install $1) and run this again"
  say "installing $1 with apt-get"
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" >"$work/apt.log" 2>&1 ||
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1"; } >"$work/apt.log" 2>&1 ||
    { tail -5 "$work/apt.log" >&2; die "$1 cannot be installed"; }
}

cleanup() {
  local status=$?
  trap - EXIT INT TERM
  set +e
  for job in "${jobs_running[@]}" $watchdog; do pkill -P "$job" 2>/dev/null; kill "$job" 2>/dev/null; done
  if [ -n "${KEEP:-}" ]; then
    say "left running: DOCKER_HOST=${DOCKER_HOST:-} ${compose[*]:-} ps"
    exit $status
  fi
  if [ -n "${up:-}" ]; then
    [ $status = 0 ] || { compose ps --all; compose logs --no-color --tail 20; } 2>&1 | cut -c -300
    compose down --volumes --remove-orphans --timeout 5 >"$work/down.log" 2>&1 || { cat "$work/down.log" >&2; status=1; }
  fi
  if [ -n "$dockerd_pid" ]; then
    kill "$dockerd_pid" 2>/dev/null
    for _ in $(seq 100); do kill -0 "$dockerd_pid" 2>/dev/null || break; sleep 0.1; done
    kill -0 "$dockerd_pid" 2>/dev/null && { echo "error: dockerd (process $dockerd_pid) does not end" >&2; status=1; }
  fi
  rm -rf "$work"
  say "done, exit code $status"
  exit $status
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Docker: the one that runs, or one of our own.
command -v docker >/dev/null || need_package docker.io docker
if ! docker info >/dev/null 2>&1; then
  [ "$(id -u)" = 0 ] || die "no Docker answers: start one, or run this as root, which starts one for the time of the test"
  command -v dockerd >/dev/null || need_package docker.io dockerd
  mkdir -p "$cache/docker"
  # In a session of its own: Ctrl-C must not end it before the stack is down.
  setsid dockerd --data-root "$cache/docker" --exec-root "$work/exec" --pidfile "$work/dockerd.pid" \
    --host "unix://$work/docker.sock" >"$work/dockerd.log" 2>&1 &
  dockerd_pid=$!
  export DOCKER_HOST=unix://$work/docker.sock
  for _ in $(seq 300); do docker info >/dev/null 2>&1 && break; kill -0 "$dockerd_pid" 2>/dev/null || break; sleep 0.1; done
  docker info >/dev/null 2>&1 || { tail -20 "$work/dockerd.log" >&2; die "dockerd does not start here"; }
  say "dockerd $(docker version --format '{{.Server.Version}}') of our own, process $dockerd_pid"
fi

# Compose: v2 as a plugin or a program, else built from its Go module.
if docker compose version >/dev/null 2>&1; then
  compose=(docker compose)
elif docker-compose version --short 2>/dev/null | grep -q '^v\?2'; then
  compose=(docker-compose)
else
  if [ ! -x "$cache/docker-compose-$compose_version" ]; then
    say "docker compose is missing, building $compose_version (some minutes, once)"
    dir=$(go mod download -json "github.com/docker/compose/v2@$compose_version" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
    cp -r "$dir" "$work/compose"
    chmod -R u+w "$work/compose"
    (cd "$work/compose" && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$cache/docker-compose-$compose_version" ./cmd)
  fi
  compose=("$cache/docker-compose-$compose_version")
fi
export COMPOSE_PROJECT_NAME=$project
port=$((20000 + RANDOM % 20000))
# A port of our own, and a model that thinks, so that there is always something under way.
cat >"$work/test.yml" <<EOF
services:
  nats:
    ports: !override ["127.0.0.1:$port:4222"]
  mock-llm:
    ports: !reset []
    command: ["mock-llm", "--addr", "0.0.0.0:8090", "--think", "1s"]
EOF
files=(--file docker-compose.yml)
if [ -n "$hardened" ]; then files+=(--file docker-compose.hardened.yml); fi
files+=(--file "$work/test.yml")
compose=("${compose[@]}" --project-directory . "${files[@]}" --profile demo)
compose() { "${compose[@]}" "$@"; }

if [ -n "$hardened" ]; then
  export REPRISE_SECRETS=$work/secrets
  ./deploy/secrets.sh "$REPRISE_SECRETS" >/dev/null
fi
compose config --quiet

# shellcheck source=scripts/compose/standins.sh
. scripts/compose/standins.sh
ensure_image redis:7-alpine make_redis
ensure_image nats:2-alpine make_nats
ensure_image golang:1.26 make_golang
say "building the image"
compose build --quiet coordinator >"$work/build.log" 2>&1 || { tail -30 "$work/build.log" >&2; die "the image does not build"; }
say "image reprise: $(docker image inspect --format '{{.Size}}' reprise | awk '{printf "%.0f MB", $1/1e6}'), user $(docker image inspect --format '{{.Config.User}}' reprise)"

# The command line comes from the image where it can run, so that what is tested is what is shipped.
if [ "$(uname -s)" = Linux ]; then
  container=$(docker create reprise)
  docker cp "$container:/usr/local/bin/reprise" "$work/reprise" >/dev/null
  docker rm "$container" >/dev/null
else
  go build -o "$work/reprise" ./cmd/reprise
fi
if [ -n "$hardened" ]; then
  export REPRISE_NATS_CA_FILE=$REPRISE_SECRETS/ca.pem REPRISE_NATS_INBOX_PREFIX=_INBOX.client
  sed "s/@nats:4222/@localhost:$port/" "$REPRISE_SECRETS/client_nats_url" >"$work/client_nats_url"
  export REPRISE_NATS_URL_FILE=$work/client_nats_url
else
  export REPRISE_NATS_URL=nats://127.0.0.1:$port
fi
reprise() { timeout 30 "$work/reprise" "$@"; }

# Whatever hangs: the test ends, and cleans up.
(sleep "${LIMIT:-300}"; echo "error: not over after ${LIMIT:-300} s" >&2; kill -TERM $$) &
watchdog=$!
up=1
say "starting the stack"
compose up --detach --wait --wait-timeout 120 --quiet-pull >"$work/up.log" 2>&1 || { tail -20 "$work/up.log" >&2; die "the stack does not get healthy"; }
measured=$SECONDS
scale() { compose up --detach --no-recreate --scale "worker=$1" worker >>"$work/up.log" 2>&1 || { tail -5 "$work/up.log" >&2; die "scaling to $1 workers"; }; }
scale 5
reprise workflows put examples/subworkflow-child.json --id child >/dev/null 2>&1 || true
say "up, with $(docker ps --quiet --filter "label=com.docker.compose.project=$project" --filter label=com.docker.compose.service=worker | wc -l) workers"

# Submissions, evenly over the time of the kills. Each has an id, so repeating one is harmless.
examples=(examples/agent-parallel-tools.json examples/agent-stack-trace.json)
submit() {
  local id=$1 file=$2
  for _ in $(seq 60); do
    reprise submit "$file" --id "$id" >/dev/null 2>>"$work/submit.log" && return
    sleep 0.5
  done
  echo "$id could not be submitted: $(tail -1 "$work/submit.log")" >&2
  return 1
}
lane() { # every fourth execution
  local i failed=0
  for ((i = $1; i <= executions; i += 4)); do
    submit "run-$i" "${examples[$((i % ${#examples[@]}))]}" || failed=1
    sleep 0.8
  done
  return $failed
}
for n in 1 2 3 4; do
  lane "$n" &
  jobs_running+=($!)
done

# One container of a service is killed, and started again as an orchestrator would.
kill_one() {
  local service=$1 pause=$2 id
  id=$(docker ps --quiet --filter "label=com.docker.compose.project=$project" --filter "label=com.docker.compose.service=$service" | shuf -n 1)
  [ -n "$id" ] || die "no $service runs"
  docker kill "$id" >/dev/null
  say "$service killed"
  sleep "$pause"
  docker start "$id" >/dev/null
}
sleep 4
kill_one worker 3; sleep 2
kill_one coordinator 3; sleep 3
kill_one redis 2; sleep 5
kill_one nats 2; sleep 5
kill_one worker 1; kill_one coordinator 1; sleep 2
say "scaling down to one worker"
scale 1

failed=0
for job in "${jobs_running[@]}"; do wait "$job" || failed=1; done
jobs_running=()
[ $failed = 0 ] || die "not everything could be submitted"
say "$executions submitted"

unfinished() { reprise executions list --limit "$((2 * executions))" 2>"$work/list.log" >"$work/list"; awk 'NR > 1 && $2 !~ /^(success|error|canceled)$/' "$work/list"; }
for ((end = SECONDS + 120; ; )); do
  left=$(unfinished) && [ "$(grep -c '^run-' "$work/list")" -ge "$executions" ] && [ -z "$left" ] && break
  [ $SECONDS -lt $end ] || { echo "$left" | head -20 >&2; die "unfinished after two minutes (listed: $(grep -c '^run-' "$work/list"))"; }
  sleep 1
done

# Each id once and finished; what failed must name its reason.
good=0 bad=0
for ((i = 1; i <= executions; i++)); do
  status=$(awk -v id="run-$i" '$1 == id {print $2}' "$work/list")
  if [ "$status" = success ]; then
    good=$((good + 1))
  else
    bad=$((bad + 1))
    echo "run-$i: ${status:-lost}" >&2
    reprise executions show "run-$i" 2>&1 | tail -20 >&2 || true
  fi
done
dead=$(reprise dead list 2>/dev/null | grep -c '^run-' || true)
say "$good of $executions succeeded, $bad did not, $dead dead letters; $((SECONDS - measured)) s from healthy to the last end"
[ $bad = 0 ] || die "executions failed"
