# shellcheck shell=bash
# Images of our own under the names that docker-compose.yml and deploy/Dockerfile take
# from a registry, for machines that cannot pull any: made of this machine's redis-server
# and Go, and of the nats-server in go.mod. Sourced by scripts/compose-test.sh.

# ensure_image NAME MAKER: what is there is kept, else pulled, else made.
ensure_image() {
  local name=$1 maker=$2
  # A stand-in for Go holds the modules of one go.sum.
  case "$(docker image inspect --format '{{index .Config.Labels "reprise.go-sum"}}' "$name" 2>/dev/null || echo missing)" in
    missing) ;;
    '' | '<no value>' | "$(go_sum)") return ;;
  esac
  if [ -z "${REPRISE_COMPOSE_NO_PULL:-}" ] && timeout 60 docker pull --quiet "$name" >/dev/null 2>&1; then
    say "$name pulled"
    return
  fi
  say "$name cannot be pulled, making a stand-in"
  local root
  root=$(mktemp -d "$work/image.XXXXXX")
  "$maker" "$root" "$name"
  rm -rf "$root"
}

go_sum() { cksum <go.sum | tr ' ' -; }

# base_files DIR: a shell and the few commands that entry points and health checks call.
base_files() {
  local root=$1 applet
  command -v busybox >/dev/null || need_package busybox-static busybox
  ldd "$(command -v busybox)" >/dev/null 2>&1 && { need_package busybox-static busybox; hash -r; }
  mkdir -p "$root"/{bin,etc,tmp,root}
  chmod 1777 "$root/tmp"
  cp "$(command -v busybox)" "$root/bin/busybox"
  for applet in sh cp mkdir chmod ls cat grep wget sleep; do ln -s busybox "$root/bin/$applet"; done
  printf 'root:x:0:0::/root:/bin/sh\nredis:x:999:1000::/data:/bin/sh\n' >"$root/etc/passwd"
}

# with_libraries DIR PROGRAM: copies a program of this machine and what it is linked to.
with_libraries() {
  local root=$1 program=$2 library
  mkdir -p "$root/usr/local/bin"
  cp -L "$program" "$root/usr/local/bin/"
  for library in $(ldd "$program" | grep -o '/[^ ]*\.so[^ ]*' | sort -u); do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
  done
}

path='PATH=/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin'

make_redis() {
  local root=$1
  base_files "$root"
  command -v redis-server >/dev/null || need_package redis-server
  with_libraries "$root" "$(command -v redis-server)"
  # Debian's redis-cli is the same binary as other tools of the package, by name.
  with_libraries "$root" "$(command -v redis-cli)"
  mkdir -p "$root/data"
  chown 999:1000 "$root/data"
  tar -C "$root" -c . | docker import --change "ENV $path" --change 'WORKDIR /data' - "$2" >/dev/null
}

make_nats() {
  local root=$1
  base_files "$root"
  mkdir -p "$root/usr/local/bin" "$root/data"
  CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$root/usr/local/bin/nats-server" github.com/nats-io/nats-server/v2
  # As the official image: arguments alone are the server's.
  printf '#!/bin/sh\ncase "$1" in -*) set -- nats-server "$@";; esac\nexec "$@"\n' >"$root/entrypoint.sh"
  chmod 755 "$root/entrypoint.sh"
  tar -C "$root" -c . | docker import --change "ENV $path" --change 'ENTRYPOINT ["/entrypoint.sh"]' - "$2" >/dev/null
}

# make_golang: the compiler, and the modules of go.mod as a module proxy of files, as a
# machine that cannot pull images may well be unable to fetch modules in a container.
make_golang() {
  local root=$1 goroot cache
  base_files "$root"
  goroot=$(go env GOROOT)
  mkdir -p "$root/usr/local/go" "$root/etc/ssl/certs" "$root/modules"
  tar -C "$goroot" -c bin pkg src lib go.env VERSION | tar -C "$root/usr/local/go" -x
  cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
  cache=$(mktemp -d "$work/modules.XXXXXX")
  GOMODCACHE=$cache GOFLAGS=-modcacherw GOPROXY="file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)" go mod download
  mv "$cache/cache/download"/* "$root/modules/"
  rm -rf "$cache"
  tar -C "$root" -c . | docker import --change "ENV $path" --change 'ENV HOME=/root' --change 'ENV GOPATH=/go' \
    --change "LABEL reprise.go-sum=$(go_sum)" --change 'ENV GOTOOLCHAIN=local' --change 'ENV GOPROXY=file:///modules' - "$2" >/dev/null
}
