#!/usr/bin/env bash
# Builds the page into a temporary folder and compares it with the one in the package.
set -euo pipefail
cd "$(dirname "$0")"
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
npx --no-install tsc --noEmit
node build.mjs "$built"
for file in hermes_plugin/dashboard/page/index.js hermes_plugin/dashboard/page/style.css web/static/shell.js web/static/shell.css; do
  cmp "$built/$file" "../src/hermes_memory_pgvector/$file" || { echo "$file is not what page/src makes; run: make page" >&2; exit 1; }
done
largest=150000
size=$(gzip -9c "$built/hermes_plugin/dashboard/page/index.js" | wc -c)
[ "$size" -le "$largest" ] || { echo "the page has $size bytes gzipped, more than $largest" >&2; exit 1; }
echo "the page is what its sources make, $size bytes gzipped"
