//! The keys and certificates of one control plane, made once for its directory.
//!
//! They serve tests on loopback: nothing here is fit for a network.

use std::{fs, path::Path, path::PathBuf};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// The files of a PKI, all PEM.
#[derive(Debug)]
pub(super) struct Pki {
    /// Signs the two certificates below, and is what clients and servers trust.
    pub(super) ca: PathBuf,
    /// For `127.0.0.1`, `localhost` and the names of the `kubernetes` Service.
    pub(super) serving: Identity,
    /// In the group `system:masters`, which RBAC lets do everything.
    pub(super) admin: Identity,
    /// The user that RBAC knows as the controller manager.
    pub(super) controller_manager: Identity,
    /// Signs service account tokens.
    pub(super) token_key: PathBuf,
    /// Verifies them: the public half.
    pub(super) token_public_key: PathBuf,
}

/// The files of the etcd's own PKI, which no API server's client is part of.
#[derive(Clone, Debug)]
pub struct EtcdPki {
    /// Signs the two certificates below, and is what both sides trust.
    pub ca: PathBuf,
    /// For `127.0.0.1`.
    pub(super) serving: Identity,
    /// What etcd answers to.
    pub client: Identity,
}

/// A certificate and the key that belongs to it.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The certificate.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

impl Pki {
    /// Uses the files of an earlier run in `dir`, or makes them. The last file written is looked for, so that
    /// a half-made set is made again, and the newest kind of file, for directories from before there was such
    /// a kind.
    pub(super) fn at(dir: &Path) -> Result<Self> {
        let identity = |name: &str| Identity {
            certificate: dir.join(format!("{name}.crt")),
            key: dir.join(format!("{name}.key")),
        };
        let pki = Self {
            ca: dir.join("ca.crt"),
            serving: identity("apiserver"),
            admin: identity("admin"),
            controller_manager: identity("controller-manager"),
            token_key: dir.join("tokens.key"),
            token_public_key: dir.join("tokens.pub"),
        };
        if ![&pki.token_public_key, &pki.controller_manager.key].iter().all(|file| file.exists()) {
            fs::create_dir_all(dir).with_context(|| format!("create {}", dir.display()))?;
            pki.make().with_context(|| format!("make the certificates in {}", dir.display()))?;
        }
        Ok(pki)
    }

    fn make(&self) -> Result<()> {
        let authority = authority("etch-e2e", &self.ca)?;
        let names = ["127.0.0.1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let mut serving = params(&names, "kube-apiserver")?;
        serving.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.serving.issue(serving, &authority)?;

        let mut admin = params(&[], "admin")?;
        admin.distinguished_name.push(DnType::OrganizationName, "system:masters");
        admin.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.admin.issue(admin, &authority)?;

        let mut controller_manager = params(&[], "system:kube-controller-manager")?;
        controller_manager.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.controller_manager.issue(controller_manager, &authority)?;

        let tokens = KeyPair::generate()?;
        fs::write(&self.token_key, tokens.serialize_pem())?;
        fs::write(&self.token_public_key, tokens.public_key_pem())?;
        Ok(())
    }
}

impl EtcdPki {
    /// As [`Pki::at`].
    pub(super) fn at(dir: &Path) -> Result<Self> {
        let identity = |name: &str| Identity {
            certificate: dir.join(format!("{name}.crt")),
            key: dir.join(format!("{name}.key")),
        };
        let pki =
            Self { ca: dir.join("etcd-ca.crt"), serving: identity("etcd"), client: identity("etcd-client") };
        if !pki.client.key.exists() {
            fs::create_dir_all(dir).with_context(|| format!("create {}", dir.display()))?;
            pki.make().with_context(|| format!("make etcd's certificates in {}", dir.display()))?;
        }
        Ok(pki)
    }

    fn make(&self) -> Result<()> {
        let authority = authority("etch-e2e-etcd", &self.ca)?;
        let mut serving = params(&["127.0.0.1", "localhost"], "etcd")?;
        // Its gateway is a client of its own port, with the same certificate.
        serving.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        self.serving.issue(serving, &authority)?;
        let mut client = params(&[], "etcd-client")?;
        client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.client.issue(client, &authority)
    }
}

impl Identity {
    fn issue(&self, mut params: CertificateParams, authority: &Issuer<'_, KeyPair>) -> Result<()> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        fs::write(&self.certificate, params.signed_by(&key, authority)?.pem())?;
        fs::write(&self.key, key.serialize_pem())?;
        Ok(())
    }
}

fn authority(common_name: &str, certificate: &Path) -> Result<Issuer<'static, KeyPair>> {
    let mut params = params(&[], common_name)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let key = KeyPair::generate()?;
    fs::write(certificate, params.self_signed(&key)?.pem())?;
    Ok(Issuer::new(params, key))
}

fn params(names: &[&str], common_name: &str) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    params.distinguished_name.push(DnType::CommonName, common_name);
    Ok(params)
}
