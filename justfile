# Each recipe runs one command that you can also run yourself. `cargo demo` and `cargo ci` do not need just.

# List the recipes
default:
    @just --list

# Run the main job, end to end, on a local control plane
demo *flags:
    cargo demo {{ flags }}

# Run all checks and tests, or some steps of them: `just ci format documentation`
ci *steps:
    cargo ci {{ steps }}

# Format the Rust code
fmt:
    cargo fmt --all

# Run clippy on everything; warnings are errors
lint:
    cargo ci lint "lint of otlp"

# Run the unit tests, and the operator against a scripted API server, in seconds and without Go; `just test NAME` runs some of them
test *filter:
    cargo test --workspace --lib --bins --test wire {{ filter }}

# Run each library's tests in a folder that contains only the library, its dependencies, and the inherited settings
alone:
    #!/usr/bin/env bash
    set -euo pipefail
    root=$PWD
    for package in go-text etcd-snapshot kube-structural-schema kube-managed-fields kube-manifests kube-validation-rules kube-crd-validation; do
      folder=$(mktemp --directory)
      mkdir "$folder/crates"
      cp -r crates/go-text "crates/$package" "$folder/crates/"
      for other in $(sed -n 's/^\(kube-[a-z-]*\)\.workspace = true$/\1/p' "crates/$package/Cargo.toml"); do
        cp -r "crates/$other" "$folder/crates/"
      done
      sed '/^\[package\]/,$d; s|^members = .*|members = ["crates/*"]|' Cargo.toml >"$folder/Cargo.toml"
      cp Cargo.lock rust-toolchain.toml "$folder/"
      (cd "$folder" && cargo test --package "$package" --target-dir "$root/target/alone")
      rm -r "$folder"
    done

# Record what Go's own packages answer, for the tests of their ports; needs go
ports:
    go -C e2e/oracle run ./ports ../../crates/go-text/src/go-1.26

# Record what crdify finds in the corpus, for the test of `etch lint --old`; needs go
crdify:
    go -C e2e/oracle/crdify run . ../../corpus/pairs | gzip -9 -n >e2e/oracle/crdify/answers.jsonl.gz

# Record what controller-gen makes of markers and of published API packages, for the tests of `etch lint --go`; needs go
controller-gen:
    go -C e2e/oracle/controller-gen run . packages >e2e/oracle/controller-gen/packages.jsonl
    go -C e2e/oracle/controller-gen run . markers markers.txt | gzip -9 -n >e2e/oracle/controller-gen/markers.jsonl.gz
    go -C e2e/oracle/controller-gen run . constraints | gzip -9 -n >e2e/oracle/controller-gen/constraints.jsonl.gz

# Run the scenarios of one file on a control plane, for example `just scenario main_job`
scenario file *filter:
    cargo test --package e2e --test {{ file }} {{ filter }}

# Compare every answer with raw etcd on random clusters; `just answers 1 SEED` repeats one that failed
answers clusters="1000" seed="":
    ANSWERS_CLUSTERS={{ clusters }} {{ if seed == "" { "" } else { "ANSWERS_SEED=" + seed } }} cargo test --package e2e --test answers -- --nocapture

# Measure how many objects of random types have a known state without access to etcd
known types="1000" seed="1000":
    TYPES={{ types }} TYPES_SEED={{ seed }} cargo test --package e2e --test known random -- --nocapture

# Compare every claim with raw etcd in random lives of CRDs; `just lives 1 SEED` repeats one that failed
lives lives="1000" seed="":
    LIVES={{ lives }} {{ if seed == "" { "" } else { "LIVES_SEED=" + seed } }} cargo test --package e2e --test lives -- --ignored --nocapture

# Stop, crash and suspend replicas for ten minutes; fail if a law is broken
churn seconds="600":
    CHURN_SECONDS={{ seconds }} cargo test --package e2e --test replicas -- --ignored --nocapture

# Keep one operator busy for an hour; fail if its memory grows
soak seconds="3600":
    SOAK_SECONDS={{ seconds }} cargo test --release --package e2e --test soak -- --ignored --nocapture

# Inject every fault into every kind of request and each write, in six workloads; `cargo ci` runs a part of them
faults:
    cargo test --package e2e --test faults -- --ignored --nocapture

# Measure an idle operator with 500 CRDs of 20 objects, large objects, large CRDs, 3,000 CRDs, and real ones; do not use the machine meanwhile
idle:
    cargo test --release --package e2e --test idle -- --ignored --nocapture --test-threads 1

# Lint the overlays and the chart with checkov, which it needs from PyPI; `cargo test -p e2e --test install` lints them with kube-score
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
      rm "$rendered"
    done

# Test that the alerts fire when they should; builds promtool once
alerts:
    cargo test --package e2e --test alerts

# Write what released API servers publish to e2e/openapi/releases, from the pinned Go modules
openapi-releases *flags:
    cargo run --quiet --package e2e --bin openapi-releases -- {{ flags }}

# Write the generated files: the CRDs, yaml/install.yaml and parts of config/chart
generate:
    cargo run --quiet --package e2e --bin install-files

# Run etcd and an API server until Ctrl-C; in another shell, `export KUBECONFIG=DIR/kubeconfig`
control-plane dir *flags:
    cargo run --quiet --package e2e --bin control-plane -- --dir {{ dir }} {{ flags }}

# Check vectors of what the API server does, from files or folders
conformance *paths:
    cargo run --quiet --release --package e2e --bin conformance -- {{ paths }}

# Simulate whole clusters on virtual time, for example `just simulate 100000` or `just simulate 1 4711`
simulate lives="10000" seed="0" *flags:
    cargo run --quiet --release --package e2e --bin simulate -- --lives {{ lives }} --seed {{ seed }} {{ flags }}

# Compare Etch with the API server's own code on random cases, for example `just differential --pairs 1000000 --seed 7`
differential *flags:
    cargo run --quiet --release --package e2e --bin differential -- {{ flags }}

# Measure filling and deciding, compared with Go and with copying and parsing the same objects; needs go
bench *names:
    cargo run --quiet --release --package e2e --bin bench -- {{ names }}

# Measure `etch audit` on 100,000 objects, compared with a bare loop that lists and parses the same pages; do not use the machine meanwhile
bench-audit *flags:
    cargo run --quiet --release --package e2e --bin bench -- audit {{ flags }}

# Measure the validation of whole CRDs: those of a folder, and one of 1 MB; `just bench-verdicts FOLDER` takes another folder
bench-verdicts *folder:
    cargo run --quiet --release --package e2e --bin bench -- verdicts {{ folder }}

# Measure a pass over objects of several sizes, compared with a bare loop and two migrators, and its effect on another client; do not use the machine meanwhile
bench-pass *flags:
    cargo run --quiet --release --package e2e --bin bench -- pass {{ flags }}

# Measure an upgrade of a CRD with 100,000 objects, with and without the guard; do not use the machine meanwhile
bench-guard *flags:
    cargo run --quiet --release --package e2e --bin bench -- guard {{ flags }}

# Measure a restart of the operator with 100,000 objects that store their defaults; do not use the machine meanwhile
bench-restart *flags:
    cargo run --quiet --release --package e2e --bin bench -- restart {{ flags }}

# Measure the operator's memory while objects of 1 MB are stored and change; do not use the machine meanwhile
bench-memory *flags:
    cargo run --quiet --release --package e2e --bin bench -- memory {{ flags }}

# Measure the admission server over HTTPS: reviews of a 10 kB Machine, compared with an empty handler, and its memory; do not use the machine meanwhile
bench-admission *flags:
    cargo run --quiet --release --package e2e --bin bench -- admission-server {{ flags }}

# Send random and mutated reviews; fail if one gets no answer; `just fuzz-admission 20000 SEED` repeats a run
fuzz-admission reviews="1000000" seed="":
    ADMISSION_REVIEWS={{ reviews }} {{ if seed == "" { "" } else { "ADMISSION_SEED=" + seed } }} cargo test --package e2e --test admission_server random_reviews -- --nocapture

# Observe on a real server what each kind of request leaves in etcd, and write it to e2e/matrix; `just matrix --kubernetes 1.34` for another release
matrix *flags:
    cargo run --quiet --package e2e --bin matrix -- {{ flags }}

# Explore every interleaving of users, API servers and Etch, within larger bounds than `cargo ci`
machines users="1" crashes="0" faults="1" upgrades="1" behind="1" restores="0":
    MACHINES_BOUNDS={{ users }},{{ crashes }},{{ faults }},{{ upgrades }},{{ behind }},{{ restores }} cargo test --package e2e --test machines no_law -- --nocapture

# Compare the simulator's API server with a real one in random requests; `just conform 60 SEED` repeats a run
conform sequences="60" seed="":
    CONFORM_SEQUENCES={{ sequences }} {{ if seed == "" { "" } else { "CONFORM_SEED=" + seed } }} cargo test --package e2e --test simulator conform -- --nocapture

# Read mangled CRDs, objects, owners, rules, documents, stored values, watch lines and snapshots as the product does; for example `just fuzz rules 600`
fuzz reader="" seconds="60" seed="":
    FUZZ_SECONDS={{ seconds }} {{ if seed == "" { "" } else { "FUZZ_SEED=" + seed } }} cargo test --package e2e --test fuzz {{ reader }} -- --nocapture

# Find changes of the schema engine that no test notices; needs cargo-mutants and about two hours
mutants *flags:
    #!/usr/bin/env bash
    set -euo pipefail
    # Etch walks an endless schema on a growing stack: this limit makes such a change fail before the machine runs out of memory.
    ulimit -v 6000000
    cargo mutants --package kube-structural-schema {{ flags }}

# Check the licenses, duplicates and sources of the dependencies
deny:
    cargo ci cargo-deny dependencies

# Check the dependencies for known vulnerabilities; needs GitHub
advisories:
    cargo ci cargo-deny
    target/tools/bin/cargo-deny --workspace check advisories

# Build a static binary for each architecture that the toolchain has, in target/binaries
release-binaries:
    cargo run --quiet --package e2e --bin release -- binaries

# Make everything that is published, in target/dist; `--registry`, `--source` and `--binary` set the registry, the source URL and the binaries
release *flags:
    cargo run --quiet --package e2e --bin release -- make {{ flags }}

# Push the image and the chart of target/dist to their registry; needs go
publish *flags:
    cargo run --quiet --package e2e --bin release -- push {{ flags }}

# Build the image; needs docker
image tag="etch:dev":
    docker build --tag {{ tag }} .
