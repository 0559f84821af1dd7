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
    cargo clippy --package etch --features otlp --bins -- --deny warnings

# Unit tests, and the operator on a scripted API server: in seconds, without Go; `just test NAME` for some
test *filter:
    cargo test --workspace --lib --bins --test wire {{ filter }}

# Each library's tests, in a folder with nothing but it, what it stands on, and the settings that packages inherit
alone:
    #!/usr/bin/env bash
    set -euo pipefail
    root=$PWD
    for package in kube-structural-schema kube-managed-fields kube-validation-rules kube-crd-validation; do
      folder=$(mktemp --directory)
      mkdir "$folder/crates"
      cp -r "crates/$package" "$folder/crates/"
      for other in $(sed -n 's/^\(kube-[a-z-]*\)\.workspace = true$/\1/p' "crates/$package/Cargo.toml"); do
        cp -r "crates/$other" "$folder/crates/"
      done
      sed '/^\[package\]/,$d; s|^members = .*|members = ["crates/*"]|' Cargo.toml >"$folder/Cargo.toml"
      cp Cargo.lock rust-toolchain.toml "$folder/"
      (cd "$folder" && cargo test --package "$package" --target-dir "$root/target/alone")
      rm -r "$folder"
    done

# Go's answers that the ports of its packages are held against; needs go
ports:
    go -C e2e/oracle run ./ports ../../crates/kube-structural-schema/src/go/go-1.26

# The scenarios of one file on a control plane, such as `just scenario main_job`
scenario file *filter:
    cargo test --package e2e --test {{ file }} {{ filter }}

# Every answer over random clusters, held against raw etcd; `just answers 1 SEED` for one that failed
answers clusters="1000" seed="":
    ANSWERS_CLUSTERS={{ clusters }} {{ if seed == "" { "" } else { "ANSWERS_SEED=" + seed } }} cargo test --package e2e --test answers -- --nocapture

# Ten minutes in which replicas are ended, crash and are suspended; no law may be broken
churn seconds="600":
    CHURN_SECONDS={{ seconds }} cargo test --package e2e --test replicas -- --ignored --nocapture

# An hour in which one operator always has something to do; whether its memory grows
soak seconds="3600":
    SOAK_SECONDS={{ seconds }} cargo test --release --package e2e --test soak -- --ignored --nocapture

# Every fault at every kind of request and at each write, over six workloads; `cargo ci` plays a share of them
faults:
    cargo test --package e2e --test faults -- --ignored --nocapture

# What an operator costs that has nothing to do, with 500 CRDs of 20 objects, large objects, large CRDs, 3,000 CRDs, and real ones; the machine should be idle too
idle:
    cargo test --release --package e2e --test idle -- --ignored --nocapture --test-threads 1

# What linters say of the overlays and of the chart; needs checkov (PyPI) and kube-score (`go install`)
manifests:
    #!/usr/bin/env bash
    set -euo pipefail
    export GOWORK=off CGO_ENABLED=0
    for what in default cluster-wide audit-only monitoring chart; do
      rendered=$(mktemp --suffix=.yaml)
      if [ "$what" = chart ]; then
        go -C e2e/build/helm tool helm template etch "$PWD/config/chart" --namespace etch-system --include-crds \
          --kube-version 1.34.0 --set monitoring.enabled=true,rbac.clusterWide=true,rbac.groups={stable.example.com} \
          >"$rendered"
      else
        go -C e2e/build/kustomize tool kustomize build "$PWD/config/$what" >"$rendered"
      fi
      checkov --file "$rendered" --framework kubernetes --compact --quiet
      kube-score score --kubernetes-version v1.34 "$rendered"
      rm "$rendered"
    done

# Whether the alerts fire on what they should; builds promtool, once
alerts:
    cargo test --package e2e --test alerts

# Writes what released API servers publish, from the pinned Go modules: e2e/openapi/releases
openapi-releases *flags:
    cargo run --quiet --package e2e --bin openapi-releases -- {{ flags }}

# Writes the generated files: the CRDs, yaml/install.yaml and parts of config/chart
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

# `etch audit` over 100,000 objects, beside a bare loop that lists and parses the same pages; the machine should be idle
bench-audit *flags:
    cargo run --quiet --release --package e2e --bin bench -- audit {{ flags }}

# Saying what the API server makes of whole CRDs, below a folder and of 1 MB; `just bench-verdicts FOLDER` for others
bench-verdicts *folder:
    cargo run --quiet --release --package e2e --bin bench -- verdicts {{ folder }}

# A pass over objects of several sizes, beside a bare loop and two migrators, and what another client notices; the machine should be idle
bench-pass *flags:
    cargo run --quiet --release --package e2e --bin bench -- pass {{ flags }}

# How long an upgrade of a CRD with 100,000 objects takes with the guard, and without; the machine should be idle
bench-guard *flags:
    cargo run --quiet --release --package e2e --bin bench -- guard {{ flags }}

# A restart of the operator with 100,000 objects that store their defaults; the machine should be idle
bench-restart *flags:
    cargo run --quiet --release --package e2e --bin bench -- restart {{ flags }}

# The admission server over HTTPS: reviews of a Machine of 10 kB, beside an empty handler, and its memory; the machine should be idle
bench-admission *flags:
    cargo run --quiet --release --package e2e --bin bench -- admission-server {{ flags }}

# Random and mutated reviews, each of which has to be answered; `just fuzz-admission 20000 SEED` repeats a run
fuzz-admission reviews="1000000" seed="":
    ADMISSION_REVIEWS={{ reviews }} {{ if seed == "" { "" } else { "ADMISSION_SEED=" + seed } }} cargo test --package e2e --test admission_server random_reviews -- --nocapture

# Every interleaving of users, API servers and Etch, within bounds: more of each than `cargo ci` plays
model users="1" crashes="1" faults="0" upgrades="2" behind="1" restores="0":
    MODEL_BOUNDS={{ users }},{{ crashes }},{{ faults }},{{ upgrades }},{{ behind }},{{ restores }} MODEL_SEQUENCES=60 cargo test --package e2e --test model -- --nocapture

# Mangled CRDs, objects, owners, rules, documents, stored values, lines of watches and snapshots, each read as the product reads it; `just fuzz rules 600`
fuzz reader="" seconds="60" seed="":
    FUZZ_SECONDS={{ seconds }} {{ if seed == "" { "" } else { "FUZZ_SEED=" + seed } }} cargo test --package e2e --test fuzz {{ reader }} -- --nocapture

# Changes of the schema engine that no test notices; needs cargo-mutants, and about two hours
mutants *flags:
    #!/usr/bin/env bash
    set -euo pipefail
    # A schema that never ends is walked on a stack that grows: such a change is to fail before the machine does.
    ulimit -v 6000000
    cargo mutants --package kube-structural-schema {{ flags }}

# Licenses, duplicates and sources of the dependencies; needs cargo-deny
deny:
    cargo deny check bans licenses sources

# The image; needs docker
image tag="etch:0.1.0":
    docker build --tag {{ tag }} .
