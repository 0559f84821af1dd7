//! How etcd and the API servers are started: their command lines and the audit policy.
//!
//! What is not set here is as Kubernetes ships it, since that is what the tests are about; nothing is started
//! here.

use std::{path::Path, process::Command};

use serde_json::{Value, json};

use super::pki::{EtcdPki, Pki};

/// etcd at `url` with its data in `data`; over TLS, it answers only to the holder of the client certificate.
///
/// It does not wait for the disk: its data need not survive a crash of the machine.
pub(super) fn etcd(program: &Path, data: &Path, url: &str, tls: Option<&EtcdPki>) -> Command {
    let mut command = Command::new(program);
    command.arg("--data-dir").arg(data).args([
        "--unsafe-no-fsync",
        "--log-level=warn",
        "--quota-backend-bytes=8589934592",
        // A single member has no peers, so any free port will do.
        "--listen-peer-urls=http://127.0.0.1:0",
        &format!("--listen-client-urls={url}"),
        &format!("--advertise-client-urls={url}"),
    ]);
    if let Some(EtcdPki { ca, serving, client: _ }) = tls {
        command.arg("--client-cert-auth").arg("--trusted-ca-file").arg(ca);
        command.arg("--cert-file").arg(&serving.certificate).arg("--key-file").arg(&serving.key);
    }
    command
}

/// What one API server is started with.
pub(super) struct ApiServer<'a> {
    pub(super) program: &'a Path,
    pub(super) pki: &'a Pki,
    pub(super) etcd: &'a str,
    pub(super) etcd_tls: Option<&'a EtcdPki>,
    pub(super) port: u16,
    pub(super) audit_policy: &'a Path,
    pub(super) audit_log: &'a Path,
    /// Come last, so that they win.
    pub(super) extra: &'a [String],
}

impl ApiServer<'_> {
    pub(super) fn command(&self) -> Command {
        let Self { program, pki, etcd, etcd_tls, port, audit_policy, audit_log, extra } = self;
        let Pki { ca, serving, admin: _, controller_manager: _, token_key, token_public_key } = pki;
        let mut command = Command::new(program);
        let mut file = |flag: &str, path: &Path| {
            command.arg(flag).arg(path);
        };
        file("--client-ca-file", ca);
        file("--tls-cert-file", &serving.certificate);
        file("--tls-private-key-file", &serving.key);
        file("--service-account-key-file", token_public_key);
        file("--service-account-signing-key-file", token_key);
        file("--audit-policy-file", audit_policy);
        file("--audit-log-path", audit_log);
        if let Some(EtcdPki { ca, serving: _, client }) = etcd_tls {
            file("--etcd-cafile", ca);
            file("--etcd-certfile", &client.certificate);
            file("--etcd-keyfile", &client.key);
        }
        command.args([
            // A request is answered after its audit event has been written.
            "--audit-log-mode=blocking",
            // Megabytes; in effect no rotation.
            "--audit-log-maxsize=100000",
            "--authorization-mode=RBAC",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            // Endpoints may not be on loopback, and nothing runs in this cluster that would use them.
            "--endpoint-reconciler-type=none",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24",
            &format!("--secure-port={port}"),
            &format!("--etcd-servers={etcd}"),
        ]);
        command.args(*extra);
        command
    }
}

/// Every request at the metadata level, once, when it is answered; a watch when it starts and when it ends.
/// What an API server asks itself is left out.
pub(super) fn audit_policy() -> Value {
    json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "omitManagedFields": true,
        "rules": [
            {"level": "None", "users": ["system:apiserver"]},
            {"level": "Metadata"},
        ],
    })
}
