#!/usr/bin/env bash
# Makes a Debian 12 that has only g++ and python3 able to build, run and test Leveret.
#
#   scripts/lib/setup.sh demo     what `pip install .` and the demo need
#   scripts/lib/setup.sh test     the same, and all that tools/check needs
#   scripts/lib/setup.sh packages the packages of that, and an empty .venv if none: for builds
#
# 1. Looks for what is missing and installs it with apt-get, as root or through sudo. Where neither
#    is to be had, it prints what to install and exits 3.
# 2. Makes .venv and installs into it what pyproject.toml and tools/requirements.txt name.
# A stamp in .venv, a hash of all that decides its contents, makes the second time quick.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
venv=$root/.venv
logs=$root/build/setup
level=${1:-}
apt_updated=no

fail() {
  printf 'setup: %s\n' "$*" >&2
  exit 3
}

# Runs a command into a log; shows the end of the log when the command fails.
logged() {
  local log=$logs/$1.log
  shift
  if ! "$@" >"$log" 2>&1 </dev/null; then
    tail -n 40 "$log" >&2
    printf 'setup: failed: %s (all of it in %s)\n' "$*" "$log" >&2
    return 1
  fi
}

has_header() {
  printf '#if !__has_include(<%s>)\n#error\n#endif\n' "$1" | g++ -E -x c++ - >/dev/null 2>&1
}

has_cmake() {
  local version
  version=$(cmake --version 2>/dev/null | sed -n 's/^cmake version //p') && [ -n "$version" ] &&
    [ "$(printf '%s\n3.25\n' "$version" | sort -V | head -n 1)" = 3.25 ]
}

has_python_headers() {
  python3 - <<'PYTHON'
import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))
PYTHON
}

# The Debian packages of this level whose content is not here, one a line.
missing_packages() {
  command -v g++ >/dev/null || echo g++
  has_cmake || echo cmake
  command -v ninja >/dev/null || echo ninja-build
  command -v python3 >/dev/null || echo python3
  python3 -c 'import venv, ensurepip' >/dev/null 2>&1 || echo python3-venv
  has_python_headers 2>/dev/null || echo python3-dev
  [ "$level" = demo ] && return 0
  command -v pkg-config >/dev/null || echo pkg-config
  has_header gtest/gtest.h || echo libgtest-dev
  has_header relacy/relacy.hpp || echo relacy-dev
  command -v spin >/dev/null || echo spin
}

# Packages that make more to compare with, or to count; everything builds and passes without them.
missing_optional_packages() {
  local name
  for name in ccache libtbb-dev shellcheck libstarpu-dev \
    libboost-fiber-dev libssl-dev openmpi-bin libopenmpi-dev valgrind; do
    dpkg-query -W -f '${Status}' "$name" 2>/dev/null | grep -q '^install ok' || echo "$name"
  done
}

# Sets as_root to the words before a command that needs root; fails where there are none.
find_root() {
  as_root=()
  [ "$(id -u)" = 0 ] && return
  command -v sudo >/dev/null || return 1
  as_root=(sudo)
  sudo -n true 2>/dev/null || { [ -t 0 ] && sudo -v; }
}

apt_install() {
  if [ "$apt_updated" = no ]; then
    logged apt-update "${as_root[@]}" apt-get update -q || true
    apt_updated=yes
  fi
  local -a apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get)
  local -a install=("${apt[@]}" install -y -q --no-install-recommends)
  install+=(-o DPkg::Lock::Timeout=300 "$@")
  logged "apt-$1" "${install[@]}" && return
  # apt-get installs nothing more until what was interrupted (by Ctrl-C, say) is brought to an end.
  grep -q 'dpkg --configure -a' "$logs/apt-$1.log" || return 1
  logged dpkg-configure "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive dpkg --configure -a ||
    true
  logged apt-fix "${apt[@]}" install -y -q --fix-broken || return 1
  logged "apt-$1" "${install[@]}"
}

install_packages() {
  local missing
  mapfile -t missing < <(missing_packages)
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null ||
    fail "no apt-get here; install what these Debian packages hold: ${missing[*]}"
  find_root || fail "not root and no sudo; run as root: apt-get install ${missing[*]}"
  echo "setup: installing ${missing[*]}"
  apt_install "${missing[@]}" || fail "apt-get could not install: ${missing[*]}"
  mapfile -t missing < <(missing_packages)
  [ ${#missing[@]} -eq 0 ] || fail "installed, but still not usable: ${missing[*]}"
}

install_optional_packages() {
  local missing name
  mapfile -t missing < <(missing_optional_packages)
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null && find_root || return 0
  echo "setup: installing, if possible, ${missing[*]}"
  apt_install "${missing[@]}" 2>/dev/null && return
  for name in "${missing[@]}"; do
    apt_install "$name" 2>/dev/null || echo "setup: going on without $name"
  done
}

# What to install with pip at this level, one requirement a line.
python_requirements() {
  python3 - "$root/pyproject.toml" "$level" <<'PYTHON'
import sys, tomllib
with open(sys.argv[1], "rb") as file:
    read = tomllib.load(file)
project = read.get("project", {})
extras = project.get("optional-dependencies", {})
names = ["cli", "plot"] + (["test", "dev"] if sys.argv[2] == "test" else [])
wanted = read["build-system"]["requires"] + project.get("dependencies", [])
print("\n".join(wanted + [each for name in names for each in extras.get(name, [])]))
PYTHON
  [ "$level" = demo ] || cat "$root/tools/requirements.txt"
}

# All that decides what is in .venv, as one word.
venv_key() {
  {
    printf '%s\n' "$level" "$venv"
    python3 -c 'import sys; print(sys.version, sys.base_prefix)'
    cat "$root/pyproject.toml" "$root/tools/requirements.txt" "${BASH_SOURCE[0]}"
  } | sha256sum | cut -d ' ' -f 1
}

# A virtual environment knows its own path: one that was moved or broken is made anew.
make_venv() {
  if ! grep -qsF "$venv" "$venv/bin/activate" ||
    ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    rm -rf "$venv"
    logged venv python3 -m venv "$venv" || fail "python3 -m venv did not work"
  fi
}

prepare_venv() {
  local stamp key
  stamp=$venv/setup-$level.stamp
  key=$(venv_key)
  if [ "$(cat "$stamp" 2>/dev/null)" = "$key" ] && "$venv/bin/python" -m pip --version \
    >/dev/null 2>&1; then
    return 0
  fi
  echo "setup: filling .venv"
  rm -f "$stamp"
  make_venv
  python_requirements >"$logs/requirements-$level.txt"
  logged "pip-$level" "$venv/bin/python" -m pip install --disable-pip-version-check --no-input \
    -r "$logs/requirements-$level.txt" || fail "pip could not install the requirements"
  printf '%s\n' "$key" >"$stamp"
}

case $level in
  demo | packages | test) ;;
  *) fail "usage: scripts/lib/setup.sh demo|packages|test" ;;
esac
mkdir -p "$logs"
install_packages
[ "$level" = demo ] || install_optional_packages
if [ "$level" = packages ]; then make_venv; else prepare_venv; fi
