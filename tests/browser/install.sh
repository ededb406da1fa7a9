#!/usr/bin/env bash
# What the tests of the page need beyond Python: Debian's chromium, node, and the page's packages from its lockfile.
set -euo pipefail
cd "$(dirname "$0")/../.."
missing=()
command -v chromium > /dev/null || missing+=(chromium)
command -v node > /dev/null || missing+=(nodejs)
command -v npm > /dev/null || missing+=(npm)
if [ ${#missing[@]} -gt 0 ]; then
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" fonts-dejavu-core
fi
if [ ! -e page/node_modules/.package-lock.json ] || [ page/package-lock.json -nt page/node_modules/.package-lock.json ]; then
  # Not `npm ci`: it refuses a lockfile without the optional builds for other systems, which a registry may not have.
  npm install --no-save --prefix page
fi
