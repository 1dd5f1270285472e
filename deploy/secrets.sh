#!/usr/bin/env bash
# Make the secrets of docker-compose.hardened.yml: passwords, and a certificate authority with
# certificates for NATS and Redis.
#
#   deploy/secrets.sh [DIR]      default: deploy/secrets
#
# What is there is kept, so that a second run changes nothing; remove a file to have it
# made again. ca_key.pem is needed for new certificates only: keep it elsewhere.
set -euo pipefail
dir=${1:-$(dirname "${BASH_SOURCE[0]}")/secrets}
days=825
umask 077
mkdir -p "$dir"
cd "$dir"

password() { [ -s "$1" ] || openssl rand -hex 24 >"$1"; }

for user in coordinator worker worker_gpu client operator sys; do password "nats_$user"; done
for user in coordinator admin; do password "redis_$user"; done
[ -s job_key ] || openssl rand -hex 32 >job_key
[ -s signing_key ] || openssl rand -hex 32 >signing_key

if [ ! -s ca.pem ]; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days "$days" -subj '/CN=reprise CA' \
    -addext 'basicConstraints=critical,CA:TRUE' -addext 'keyUsage=critical,keyCertSign' -keyout ca_key.pem -out ca.pem 2>/dev/null
fi
# certificate SERVICE: for the name that other containers use, and for this machine.
certificate() {
  [ -s "$1_cert.pem" ] && return
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" -keyout "$1_key.pem" -out "$1.csr" 2>/dev/null
  openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca_key.pem -CAcreateserial -days "$days" -out "$1_cert.pem" 2>/dev/null \
    -extfile <(printf 'subjectAltName=DNS:%s,DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth\nkeyUsage=digitalSignature\n' "$1")
  rm "$1.csr"
}
certificate nats
certificate redis

# Derived: written each time, so that they follow a password that was made again.
for user in coordinator worker worker_gpu client operator sys; do
  printf '%s_password: "%s"\n' "$user" "$(cat "nats_$user")"
done >nats_passwords.conf
for user in coordinator worker worker_gpu client operator; do
  printf 'tls://%s:%s@nats:4222\n' "$user" "$(cat "nats_$user")" >"${user}_nats_url"
done
printf 'rediss://coordinator:%s@redis:6379/0\n' "$(cat redis_coordinator)" >redis_url
# Nobody can be the user "default", who is off. His rights are those of Redis itself when it loads its
# append-only file: with fewer it would drop the transactions in there, which are all commits, without
# another word. The user "health" may ask whether Redis lives. A coordinator may do what its scripts do,
# on its own keys; never flush, configure or save.
hash() { printf '%s' "$(cat "$1")" | openssl dgst -sha256 -r | cut -d' ' -f1; }
cat >redis_users.acl <<EOF
user default off resetpass ~* &* +@all
user health on nopass resetkeys resetchannels -@all +ping
user coordinator on #$(hash redis_coordinator) resetchannels ~reprise:* -@all +@read +@write +@scripting +@transaction +@connection +info +time +cluster|slots +cluster|shards +cluster|info +config|get +acl|dryrun +dbsize -keys -flushall -flushdb -swapdb
user admin on #$(hash redis_admin) ~* &* +@all
EOF

# Containers read them as users of their own, through mounts of single files: the directory is
# closed to everyone else on this machine.
chmod 700 .
chmod 644 -- *
chmod 600 ca_key.pem
echo "secrets are in $(pwd)"
