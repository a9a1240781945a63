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
# How many failing tests of one step get a second run, alone. Beyond it, it is not the machine.
FLAKY_MAX=2
durations=() flaky=()

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
# A test whose servers and clients share two cores with others may fail for that alone: it runs once more
# by itself, and if it passes then, the summary calls it flaky, which is a fault to mend all the same.
tests() {
    local part=$target/test-step.txt failed
    if cargo test --locked --workspace --no-fail-fast "$@" 2>&1 | tee "$part"; then
        cat "$part" >>"$log"
        return
    fi
    cat "$part" >>"$log"
    mapfile -t failed < <(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$part")
    ((${#failed[@]} >= 1 && ${#failed[@]} <= FLAKY_MAX)) || return 1
    # A program of tests that crashed has no result, and is not excused by another's.
    grep -q "^error: $(grep -c '^test result: FAILED' "$part") targets\? failed" "$part" || return 1
    echo "== again, alone: ${failed[*]}"
    cargo test --locked --workspace --no-fail-fast "$@" -- --exact --test-threads 1 "${failed[@]}" || return
    flaky+=("${failed[@]}")
}

# Says how long each step took, names the tests that failed, and adds up the lines
# "test result: ok. 12 passed; 0 failed; ...".
summary() {
    printf '== %s\n' "${durations[@]}"
    awk '/^test .* FAILED$/' "$log"
    ((${#flaky[@]} == 0)) || printf 'flaky, passed alone: %s\n' "${flaky[@]}"
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
