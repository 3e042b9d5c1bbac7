# shellcheck shell=bash
# Shared by the scripts beside it: the folder, the packages, the build. Sourced, not run.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

say() { printf '%s\n' "$*" >&2; }

has() { command -v "$1" >/dev/null 2>&1; }

installed() { [ "$(dpkg-query -W -f '${Status}' "$1" 2>/dev/null)" = "install ok installed" ]; }

# Prints the Debian packages that are not here, one a line. A tool that is here from elsewhere
# counts; a library is looked for as a package, since only its headers would tell otherwise.
missing_packages() {
  local package compiler=${CXX:-c++}
  has "${compiler%% *}" || echo g++
  has cmake || echo cmake
  has ninja || echo ninja-build
  has dpkg-query || return 0
  for package in libfmt-dev libcli11-dev nlohmann-json3-dev libxxhash-dev libgmock-dev \
    libbenchmark-dev; do
    installed "$package" || echo "$package"
  done
}

install_packages() {
  local packages=("$@")
  local as_root=()
  local command="apt-get update && apt-get install -y --no-install-recommends ${packages[*]}"
  if ! has apt-get; then
    say "There is no apt-get here. Install what these Debian packages hold, then run this again:"
    say "  ${packages[*]}"
    exit 1
  fi
  if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo)
    # Without a terminal nobody can type a password, and sudo must say so rather than wait.
    [ -t 0 ] || as_root=(sudo -n)
    if ! has sudo; then
      say "Neither root nor sudo is available. As root, run:"
      say "  $command"
      exit 1
    fi
  fi
  # Optional, so it is fetched only along with what is needed.
  if ! has ccache; then
    say "Also ccache, which is optional: it makes a build from scratch quick the second time."
    packages+=(ccache)
  fi
  if ! { "${as_root[@]}" apt-get update -q &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -q -y --no-install-recommends "${packages[@]}"; } >&2; then
    say "The packages could not be installed. As root, run:"
    say "  $command"
    exit 1
  fi
}

ensure_packages() {
  local missing
  mapfile -t missing < <(missing_packages)
  if [ "${#missing[@]}" -gt 0 ]; then
    say "Missing packages: ${missing[*]}"
    install_packages "${missing[@]}"
  fi
}

# build PRESET [TARGET...]: everything when no target is named.
build() {
  local preset=$1
  shift
  cmake --preset "$preset"
  if [ $# -gt 0 ]; then
    cmake --build --preset "$preset" --target "$@"
  else
    cmake --build --preset "$preset"
  fi
}
