#!/usr/bin/env bash
# Builds the fuzz targets with the stable compiler and runs each for some seconds: `fuzz.sh SECONDS [TARGET...]`.
# What a run learns goes to target/fuzz/corpus and is the start of the next one; the seeds stay as they are.
# The input of a failure is written to target/fuzz.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:?usage: fuzz.sh SECONDS [TARGET...]}
shift
targets=("$@")
if [ "${#targets[@]}" -eq 0 ]; then
    targets=(configuration pattern evaluator request response)
fi

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/fuzz
host=$(rustc -vV | sed -n 's/^host: //p')
# What `cargo fuzz` asks of the compiler, without the sanitizers that only a nightly one has. The flags are
# for the targets and not for build scripts, which is why the host is named.
export RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing"
# Not --locked: the lock file here follows the crates whenever one of them gets a new dependency.
cargo build --quiet --release --manifest-path fuzz/Cargo.toml --target "$host" --target-dir "$target"

for name in "${targets[@]}"; do
    mkdir -p "$target/corpus/$name"
    log=$target/$name.log
    # 10 s and 2 GiB for one small input are a fault of their own.
    if "$target/$host/release/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=2048 \
        -artifact_prefix="$target/$name-" -dict=fuzz/words.dict \
        "$target/corpus/$name" "fuzz/corpus/$name" >"$log" 2>&1; then
        echo "fuzz $name: $(grep -o 'Done .*' "$log" | tail -n 1)"
    else
        tail -n 40 "$log" >&2
        echo "fuzz $name: failed; all of it is in $log" >&2
        exit 1
    fi
done
