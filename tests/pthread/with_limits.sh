#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# with_limits.sh COMMAND...: runs it with stacks of each size, in KiB, by the system's limit. Status 77 where one may not be set.
set -euo pipefail
for kib in 1024 65536 unlimited; do
  (ulimit -s "$kib" || exit 77; exec "$@") || exit $?
done
