#!/usr/bin/env bash
# Runs everything that must hold before a change goes in: `test.sh`, or `test.sh lint` without the tests.
# All steps share one target directory and one profile, so that nothing is compiled twice for them.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}

target=${CARGO_TARGET_DIR:-target}
log=$target/test-output.txt
# How long each fuzz target runs here: long enough to see that it still does.
FUZZ_SECONDS=3
durations=()

# step NAME COMMAND...: runs one command and remembers how long it took.
step() {
    local name=$1 began=$SECONDS status=0
    shift
    echo "== $name"
    "$@" || status=$?
    durations+=("$name $((SECONDS - began)) s")
    return "$status"
}

# Runs cargo test and keeps what it prints. Which tests fail is in there; that some do is the status.
tests() {
    cargo test --locked --workspace --no-fail-fast "$@" 2>&1 | tee -a "$log"
}

# Says how long each step took, names the tests that failed, and adds up the lines
# "test result: ok. 12 passed; 0 failed; ...".
summary() {
    printf '== %s\n' "${durations[@]}"
    awk '/^test .* FAILED$/' "$log"
    awk '/^test result: / { passed += $4; failed += $6 }
        END { printf "%d passed, %d failed\n", passed, failed }' "$log"
}

lint() {
    step format cargo fmt --all --check
    step fuzz-format cargo fmt --manifest-path fuzz/Cargo.toml --check
    step clippy cargo clippy --locked --workspace --all-targets -- -D warnings
    # The binary has no interface but its command line, whose texts are no HTML.
    step documentation env RUSTDOCFLAGS="-D warnings" \
        cargo doc --locked --workspace --no-deps --exclude milepost
}

case ${1:-all} in
lint)
    lint
    ;;
all)
    step programs scripts/needs.sh
    mkdir -p "$target"
    : >"$log"
    # Whatever happens, how many tests passed is the last word.
    trap summary EXIT
    lint
    step tests tests
    step otlp tests --features milepost/otlp --test otlp
    step benches tests --bench '*'
    step fuzz scripts/fuzz.sh "$FUZZ_SECONDS"
    ;;
*)
    echo "usage: $0 [lint]" >&2
    exit 2
    ;;
esac
