#!/usr/bin/env bash
# Refuse a change to protos/ that breaks a client of the base: $BUF_BASE, else origin/main, else main, else the parent commit.
# The base's files are taken out with git archive, so that a shallow or detached checkout works too.
set -euo pipefail
cd "$(dirname "$0")/.."

base=""
for ref in ${BUF_BASE:-origin/main main HEAD^}; do
  if git cat-file -e "$ref:protos/buf.yaml" 2>/dev/null; then base="$ref"; break; fi
done
if [ -z "$base" ]; then
  echo "buf breaking: no earlier commit with protos here; nothing to compare with"
  exit 0
fi

scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
git archive "$base" protos | tar -x -C "$scratch"
cp -r protos "$scratch/now"
# A base from before the protos named packages of other languages: nobody has generated code under a name, so a first one breaks none.
if ! grep -rq '^option go_package' "$scratch/protos"; then
  printf '  except:\n%s' "$(printf '    - FILE_SAME_%s\n' GO_PACKAGE JAVA_PACKAGE JAVA_MULTIPLE_FILES JAVA_OUTER_CLASSNAME)" \
    >>"$scratch/now/buf.yaml"
fi
(cd "$scratch" && buf breaking now --against protos)
echo "buf breaking: no break since $base"
