#!/usr/bin/env bash
# Installs the parts that the tests, the demo and the benchmarks drive.
#
#   scripts/setup.sh PART...
#
# Parts: orthanc dcmtk chromium node promtool shellcheck, web (npm packages of
# the browser tests), caddy (the benchmarks' rival, built from source).
#
# A part that is there already costs nothing. On Debian and Ubuntu, as root, a
# missing one is installed from the distribution; elsewhere the command to run
# is printed and the exit status is 1. Services that a package brings (Orthanc,
# Prometheus) are neither started nor enabled: the tests start their own, on
# loopback.
set -euo pipefail
cd "$(dirname "$0")/.."

caddy_version=v2.11.9

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

has_orthanc() {
  { have Orthanc || [ -x /usr/sbin/Orthanc ]; } &&
    compgen -G '/usr/share/orthanc/plugins/libOrthancDicomWeb.so*' >/dev/null
}
has_dcmtk() { have storescu && have storescp && have echoscu; }
has_chromium() { have chromium || have chromium-browser || have google-chrome; }
has_node() { have node && have npm; }
has_promtool() { have promtool; }
has_shellcheck() { have shellcheck; }

packages_of() {
  case $1 in
    orthanc) echo orthanc orthanc-dicomweb ;;
    dcmtk) echo dcmtk ;;
    chromium) echo chromium ;;
    node) echo nodejs npm ;;
    promtool) echo prometheus ;;
    shellcheck) echo shellcheck ;;
  esac
}

services_of() {
  case $1 in
    orthanc) echo orthanc ;;
    promtool) echo prometheus ;;
  esac
}

# keep_services_down makes the packages' scripts believe that services must not
# be started (policy-rc.d, exit 101), unless the machine has a policy already.
policy=/usr/sbin/policy-rc.d
made_policy=
keep_services_down() {
  [ -e "$policy" ] && return
  trap '[ -z "$made_policy" ] || rm -f "$policy"' EXIT
  made_policy=1
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
}

install_packages() {
  local parts=("$@") packages=() services=() part more
  for part in "${parts[@]}"; do
    read -ra more <<<"$(packages_of "$part")" && packages+=("${more[@]}")
    read -ra more <<<"$(services_of "$part")" && services+=("${more[@]}")
  done
  local update='apt-get update'
  local install="apt-get install -y --no-install-recommends ${packages[*]}"
  if ! have apt-get; then
    die "missing: ${parts[*]}. This is neither Debian nor Ubuntu: install what these Debian packages hold: ${packages[*]}"
  fi
  if [ "$(id -u)" -ne 0 ]; then
    die "missing: ${parts[*]}. Run: sudo sh -c '$update && $install'"
  fi
  say "installing ${packages[*]}"
  keep_services_down
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q >&2
  # shellcheck disable=SC2086 # a list of words
  $install -q </dev/null >&2
  local service
  for service in "${services[@]}"; do
    update-rc.d "$service" disable >&2 || say "could not disable the service $service"
  done
  for part in "${parts[@]}"; do
    "has_$part" || die "$part is still missing after installing $(packages_of "$part")"
  done
}

# setup_web installs the browser tests' npm packages, as locked, when the lock
# is newer than what is there.
setup_web() {
  local web=internal/e2e/web
  [ -f $web/package-lock.json ] || return 0
  if [ ! -e $web/node_modules/.package-lock.json ] || [ $web/package-lock.json -nt $web/node_modules/.package-lock.json ]; then
    say "installing the npm packages of $web"
    (cd $web && npm ci --no-audit --no-fund --ignore-scripts </dev/null >&2)
    touch $web/node_modules/.package-lock.json
  fi
}

# setup_caddy builds the server that the benchmarks compare with, into bin/,
# unless that version is there or on the PATH.
setup_caddy() {
  local caddy
  for caddy in bin/caddy "$(command -v caddy || true)"; do
    if go version -m "$caddy" 2>/dev/null | grep -qw "mod.*$caddy_version"; then
      return
    fi
  done
  say "building Caddy $caddy_version (some minutes the first time)"
  GOBIN=$PWD/bin go install "github.com/caddyserver/caddy/v2/cmd/caddy@$caddy_version"
}

[ $# -gt 0 ] || die "usage: scripts/setup.sh PART... (the parts are listed in the script)"
missing=()
later=()
for part in "$@"; do
  case $part in
    orthanc | dcmtk | chromium | node | promtool | shellcheck) "has_$part" || missing+=("$part") ;;
    web | caddy) later+=("$part") ;;
    *) die "unknown part $part" ;;
  esac
done
[ ${#missing[@]} -eq 0 ] || install_packages "${missing[@]}"
for part in "${later[@]}"; do
  "setup_$part"
done
