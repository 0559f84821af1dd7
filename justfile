# Every recipe is one command that can be typed as well. `cargo demo` and `cargo ci` need no just.

# Lists the recipes
default:
    @just --list

# The main job, end to end, on a local control plane
demo *flags:
    cargo demo {{ flags }}

# Every check and test
ci:
    cargo ci

# Formats the Rust code
fmt:
    cargo fmt --all

# Everything that clippy has to say
lint:
    cargo clippy --workspace --all-targets -- --deny warnings

# Unit tests, in seconds; `just test NAME` for some
test *filter:
    cargo test --workspace --lib --bins {{ filter }}

# The scenarios of one file on a control plane, such as `just scenario main_job`
scenario file *filter:
    cargo test --package e2e --test {{ file }} {{ filter }}

# Writes the generated files: config/crd/crds.yaml and yaml/install.yaml
generate:
    cargo run --quiet --package e2e --bin install-files

# etcd and an API server until Ctrl-C; `export KUBECONFIG=DIR/kubeconfig` in another shell
control-plane dir *flags:
    cargo run --quiet --package e2e --bin control-plane -- --dir {{ dir }} {{ flags }}

# Vectors of what the API server does, from files or folders
conformance *paths:
    cargo run --quiet --release --package e2e --bin conformance -- {{ paths }}

# Random cases, answered by Etch and by the API server's own code, such as `just differential --pairs 1000000 --seed 7`
differential *flags:
    cargo run --quiet --release --package e2e --bin differential -- {{ flags }}

# Filling and deciding, beside Go's and beside copying and parsing the same objects; needs go
bench *names:
    cargo run --quiet --release --package e2e --bin bench -- {{ names }}

# Changes of the schema engine that no test notices; needs cargo-mutants, and hours
mutants *flags:
    cargo mutants --package etch {{ flags }}

# Licenses, duplicates and sources of the dependencies; needs cargo-deny
deny:
    cargo deny check bans licenses sources

# The image; needs docker
image tag="etch:0.1.0":
    docker build --tag {{ tag }} .
