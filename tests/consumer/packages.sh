#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# packages.sh ROOT: cmake/install-packages of ROOT on a system that is played: two packages with services are missing, another apt has
# its locks, and the script is interrupted. Nothing is installed, and time does not pass.
set -euo pipefail
root=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin"
cp "$root/cmake/install-packages" "$folder"
printf '%s  check  a reason\n' there one two >"$folder/debian-packages.txt"

# A command of that system. In $folder are `installed`, names of packages; `did`, a line for each thing done; `apt-get-does`, what
# apt-get does next, a line for each call, the last one for ever.
play() {
  { printf '#!/usr/bin/env bash\nfolder=%q\n' "$folder" && cat; } >"$folder/bin/$1"
  chmod 755 "$folder/bin/$1"
}
play dpkg-query <<'EOF'
names=("${@:2}")
[[ $1 == -L ]] || names=("$4")
missing=0
for name in "${names[@]}"; do
  if ! grep -qx "$name" "$folder/installed"; then
    echo "dpkg-query: package '$name' is not installed" >&2
    missing=1
  elif [[ $1 == -L ]]; then
    printf '%s\n' /. "/lib/systemd/system/$name.service" "/usr/bin/$name"
  else
    printf installed
  fi
done
exit "$missing"
EOF
play apt-get <<'EOF'
echo "apt-get $*" >>"$folder/did"
next=$(head -n 1 "$folder/apt-get-does")
(($(wc -l <"$folder/apt-get-does") == 1)) || sed -i 1d "$folder/apt-get-does"
eval "$next"
EOF
play sleep <<<'echo "sleep $*" >>"$folder/did"'
play systemctl <<<'echo "systemctl $*" >>"$folder/did"'
play sudo <<<'exec "$@"'
# Of files of the system nothing is written, made executable or removed.
play tee <<<'cat >/dev/null'
play chmod <<<':'
play rm <<'EOF'
[[ ${*: -1} == /usr/* ]] || exec /bin/rm "$@"
EOF

# run STATUS WHAT-APT-GET-DOES...
run() {
  echo there >"$folder/installed"
  : >"$folder/did"
  printf '%s\n' "${@:2}" >"$folder/apt-get-does"
  local status=0
  # As from a shell, though we may run in the background.
  env --default-signal=HUP,INT,TERM PATH="$folder/bin:$PATH" "$folder/install-packages" check \
    >"$folder/out" 2>"$folder/err" || status=$?
  ((status == $1)) || fail "status $status, and not $1"
}
fail() {
  echo "packages.sh: $*" >&2
  cat "$folder"/{did,out,err} >&2
  exit 1
}
# did COUNT PATTERN, said COUNT PATTERN, warned COUNT PATTERN
count() {
  local found
  found=$(grep -cE "$3" "$folder/$1" || true)
  ((found == $2)) || fail "$found times in $1, and not $2: $3"
}
did() { count did "$@"; }
said() { count out "$@"; }
warned() { count err "$@"; }

install='printf "one\ntwo\n" >>"$folder/installed"'
locked='echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)" >&2; exit 100'

run 0 : "$install"
did 1 '^apt-get .*DPkg::Lock::Timeout=300 update$'
did 1 '^apt-get .*DPkg::Lock::Timeout=300 install -y --no-install-recommends one two$'
did 1 '^systemctl disable -q --now one.service two.service$'
said 0 waiting

# Another apt is done after a while.
run 0 "$locked" "$locked" : "$locked" "$install"
did 3 '^sleep '
said 2 '^waiting, .*held by process 7 \(apt-get\)$'  # once for each call
warned 0 lock
# Or it never is.
run 100 "$locked"
did 30 '^sleep 10$'
said 1 '^waiting, '
warned 1 lock

# What waiting does not mend, or apt-get has waited for itself.
for error in "no such release" "Could not get lock /var/lib/dpkg/lock-frontend."; do
  run 100 "echo 'E: $error' >&2; exit 100"
  did 0 '^sleep '
  warned 1 "^E: $error\$"
done

# It ends early: what is installed by then does not stay enabled.
run 100 : 'echo one >>"$folder/installed"; exit 100'
did 1 '^systemctl disable -q --now one.service$'
for signal in HUP INT TERM; do
  run $((128 + $(kill -l $signal))) : "kill -$signal \$PPID; $install"
  did 1 '^systemctl disable -q --now one.service two.service$'
done
