# syntax=docker/dockerfile:1

# On Alpine, Rust builds static musl binaries on every platform. The version is that of rust-toolchain.toml.
ARG RUST=1.95.0
FROM rust:${RUST}-alpine AS build
# ring, psm and tree-sitter are partly C and assembly.
# hadolint ignore=DL3018
RUN apk add --no-cache musl-dev
WORKDIR /src
# Features of the cargo package that are off by default, such as otlp.
ARG FEATURES=""

# The dependencies first, with sources that are empty, so that this layer lasts until a manifest changes.
COPY Cargo.toml Cargo.lock ./
COPY crates/etcd-snapshot/Cargo.toml crates/etcd-snapshot/
COPY crates/etch-admission/Cargo.toml crates/etch-admission/
COPY crates/etch-answers/Cargo.toml crates/etch-answers/
COPY crates/etch-core/Cargo.toml crates/etch-core/
COPY crates/etch-lint/Cargo.toml crates/etch-lint/
COPY crates/go-text/Cargo.toml crates/go-text/
COPY crates/kube-crd-validation/Cargo.toml crates/kube-crd-validation/
COPY crates/kube-managed-fields/Cargo.toml crates/kube-managed-fields/
COPY crates/kube-manifests/Cargo.toml crates/kube-manifests/
COPY crates/kube-structural-schema/Cargo.toml crates/kube-structural-schema/
COPY crates/kube-validation-rules/Cargo.toml crates/kube-validation-rules/
COPY e2e/Cargo.toml e2e/
COPY e2e/ci/Cargo.toml e2e/ci/
COPY e2e/simulator/Cargo.toml e2e/simulator/
RUN for package in . e2e e2e/ci e2e/simulator crates/*; do mkdir -p "$package/src" && touch "$package/src/lib.rs"; done \
 && echo 'fn main() {}' > src/main.rs \
 && cargo build --locked --release --package etch --bin etch --features "$FEATURES"

# Cargo compares modification times, and the sources may be older than the empty files.
COPY crates crates
COPY src src
RUN find crates src -name '*.rs' -exec touch {} + \
 && cargo build --locked --release --package etch --bin etch --features "$FEATURES"

# checkov:skip=CKV_DOCKER_2: Kubernetes asks /livez and /readyz itself, and there is no shell here to ask with
FROM scratch
LABEL org.opencontainers.image.title="etch" \
      org.opencontainers.image.description="Makes Kubernetes CRD defaults stored facts" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build --chmod=0555 /src/target/release/etch /etch
# nonroot: Etch writes no files, and reads none from the image.
USER 65532:65532
ENTRYPOINT ["/etch"]
