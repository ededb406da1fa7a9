#!/usr/bin/env bash
# Installs the programs that tests run beside ours: pgbouncer, chromium, node. Does nothing where they are there.
set -euo pipefail
if [ ! -x /usr/sbin/pgbouncer ]; then
    [ "$(id -u)" = 0 ] || { echo "install pgbouncer first: sudo apt-get install pgbouncer" >&2; exit 1; }
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends pgbouncer > /dev/null
    # Debian starts one of its own, which nobody needs here.
    if command -v service > /dev/null; then service pgbouncer stop > /dev/null 2>&1 || true; fi
fi
"$(dirname "$0")/browser/install.sh"
