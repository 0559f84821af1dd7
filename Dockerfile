# syntax=docker/dockerfile:1

# Alpine's Rust builds for musl, statically, on whatever platform it runs. The version is that of rust-toolchain.toml.
ARG RUST=1.95.0
FROM rust:${RUST}-alpine AS build
# ring and psm are partly C and assembly.
# hadolint ignore=DL3018
RUN apk add --no-cache musl-dev
WORKDIR /src
# Features of the cargo package that are off by default, such as otlp.
ARG FEATURES=""

# The dependencies first, with sources that are empty, so that this layer lasts until one of these three files changes.
COPY Cargo.toml Cargo.lock ./
COPY e2e/Cargo.toml e2e/
RUN mkdir -p src e2e/src \
 && touch src/lib.rs e2e/src/lib.rs \
 && echo 'fn main() {}' > src/main.rs \
 && cargo build --locked --release --package etch --bin etch --features "$FEATURES"

# Cargo goes by times, and the files may be older than the empty ones were.
COPY src src
RUN find src -name '*.rs' -exec touch {} + \
 && cargo build --locked --release --package etch --bin etch --features "$FEATURES"

# checkov:skip=CKV_DOCKER_2: Kubernetes asks /livez and /readyz itself, and there is no shell here to ask with
FROM scratch
LABEL org.opencontainers.image.title="etch" \
      org.opencontainers.image.description="Makes Kubernetes CRD defaults stored facts" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build --chmod=0555 /src/target/release/etch /etch
# Nobody's: nothing is written, and nothing but /etch is there to be read.
USER 65532:65532
ENTRYPOINT ["/etch"]
