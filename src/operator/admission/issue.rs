//! Certificates that Etch makes itself: what a Secret holds of them, and what it is to hold next.

use jiff::Timestamp;
use pem::{EncodeConfig, LineEnding, Pem};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, Error, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::prelude::{ASN1Time, FromDer, X509Certificate};

use crate::cluster::SecretData;
use crate::server::admission::{Presented, trusted, validity};
use etch_admission::renewal::{Held, Leaf, Lifetimes, Step, Validity};

/// The names of the certificates. That of the authorities shows which of those in a Secret are Etch's own.
const AUTHORITY: &str = "etch-admission authority";
const LEAF: &str = "etch-admission";

/// What a Secret holds, by key. The first three are as other issuers of certificates have them.
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const AUTHORITIES: &str = "ca.crt";
const SIGNER_KEY: &str = "ca.key";

/// How many former authorities are trusted. There is more than one only if a signer's key was removed from
/// the Secret.
const MOST_FORMER: usize = 7;

/// What was found in a Secret.
pub(super) struct Issued {
    signer: Option<Signer>,
    /// The certificates of the others, the one that ends last first.
    former: Vec<Authority>,
    leaf: Option<Leaf>,
    presented: Presented,
    has_foreign: bool,
}

struct Signer {
    authority: Authority,
    key: KeyPair,
}

struct Authority {
    certificate: CertificateDer<'static>,
    validity: Validity,
}

impl Issued {
    /// Reads what a Secret holds for a server of this name. What cannot be used is as if it were not there.
    pub(super) fn read(data: &SecretData, host: &str, now: Timestamp) -> Self {
        let of = |key: &str| data.get(key).cloned().unwrap_or_default();
        let bundle = of(AUTHORITIES);
        let (mut found, mut has_foreign) = (Vec::new(), false);
        for certificate in CertificateDer::pem_slice_iter(&bundle) {
            match certificate.ok().and_then(Authority::read) {
                Some(authority) if !authority.validity.has_ended(now) => found.push(authority),
                _ => has_foreign = true,
            }
        }
        let presented = presented(data);
        let certificates: Vec<_> =
            found.iter().map(|authority: &Authority| authority.certificate.clone()).collect();
        let leaf_validity = trusted(&presented, host, &certificates);
        let key = String::from_utf8(of(SIGNER_KEY)).ok().and_then(|pem| KeyPair::from_pem(&pem).ok());
        let signer = key.and_then(|key| {
            let at = found.iter().position(|authority| authority.is_of(&key))?;
            Some(Signer { authority: found.remove(at), key })
        });
        let leaf = leaf_validity.map(|validity| {
            let alone = signer.as_ref().map(|signer| signer.authority.certificate.clone());
            let is_by_signer = trusted(&presented, host, alone.as_slice()).is_some();
            Leaf { validity, is_by_signer }
        });
        found.sort_by_key(|former| std::cmp::Reverse(former.validity.until));
        has_foreign |= found.len() > MOST_FORMER;
        found.truncate(MOST_FORMER);
        Self { signer, former: found, leaf, presented, has_foreign }
    }

    /// What renewal is decided by.
    pub(super) fn held(&self) -> Held {
        Held {
            signer: self.signer.as_ref().map(|signer| signer.authority.validity),
            leaf: self.leaf,
            former: self.former.iter().map(|former| former.validity).collect(),
            has_foreign: self.has_foreign,
        }
    }

    /// Whether a client that trusts the authorities in this PEM bundle trusts the signer.
    pub(super) fn signer_is_in(&self, bundle: &[u8]) -> bool {
        let signer = self.signer.as_ref().map(|signer| &signer.authority.certificate);
        signer.is_some_and(|signer| {
            CertificateDer::pem_slice_iter(bundle).flatten().any(|certificate| certificate == *signer)
        })
    }

    /// What the Secret is to hold after a step.
    ///
    /// # Errors
    /// A key or a certificate cannot be made.
    pub(super) fn after(
        self,
        step: Step,
        host: &str,
        lifetimes: &Lifetimes,
        now: Timestamp,
    ) -> Result<SecretData, Error> {
        let Self { signer, mut former, mut presented, .. } = self;
        let signer = match signer {
            Some(signer) if !matches!(step, Step::Signer | Step::Both) => signer,
            before => {
                former.extend(before.map(|before| before.authority));
                Signer::make(Validity::new(now, lifetimes.authority))?
            }
        };
        if matches!(step, Step::Leaf | Step::Both) {
            let validity = Validity::new(now, lifetimes.leaf).within(signer.authority.validity);
            let (certificate, key) = signer.sign(host, validity)?;
            presented.certificate = certificate.pem().into_bytes();
            presented.key = key.serialize_pem().into_bytes();
        }
        let authorities = std::iter::once(&signer.authority).chain(&former);
        let bundle: String = authorities.map(|authority| encoded(&authority.certificate)).collect();
        Ok([
            (CERTIFICATE, presented.certificate),
            (KEY, presented.key),
            (AUTHORITIES, bundle.into_bytes()),
            (SIGNER_KEY, signer.key.serialize_pem().into_bytes()),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into())
    }
}

/// What is presented of what a Secret holds.
pub(super) fn presented(data: &SecretData) -> Presented {
    let of = |key: &str| data.get(key).cloned();
    Presented {
        certificate: of(CERTIFICATE).unwrap_or_default(),
        key: of(KEY).unwrap_or_default(),
        authority: of(AUTHORITIES),
    }
}

impl Authority {
    /// Reads a certificate; none if it is not that of an authority of Etch's own.
    fn read(certificate: CertificateDer<'static>) -> Option<Self> {
        let (_, parsed) = X509Certificate::from_der(&certificate).ok()?;
        let is_ours = parsed.subject().iter_common_name().any(|name| name.as_str() == Ok(AUTHORITY));
        let validity = validity(&parsed).filter(|_| is_ours && parsed.is_ca())?;
        Some(Self { certificate, validity })
    }

    /// Whether this is the key of the certificate.
    fn is_of(&self, key: &KeyPair) -> bool {
        let parsed = X509Certificate::from_der(&self.certificate);
        parsed.is_ok_and(|(_, parsed)| *parsed.public_key().subject_public_key.data == *key.public_key_raw())
    }
}

impl Signer {
    fn make(validity: Validity) -> Result<Self, Error> {
        let key = KeyPair::generate()?;
        let mut params = params(AUTHORITY, validity)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let certificate = params.self_signed(&key)?.der().clone();
        Ok(Self { authority: Authority { certificate, validity }, key })
    }

    /// A certificate for a server of this name, with a new key.
    fn sign(&self, host: &str, validity: Validity) -> Result<(Certificate, KeyPair), Error> {
        let key = KeyPair::generate()?;
        let mut params = params(LEAF, validity)?;
        params.subject_alt_names = CertificateParams::new([host.to_owned()])?.subject_alt_names;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        // The key identifies the authority: all of them have the same name.
        let issuer = Issuer::new(self::params(AUTHORITY, self.authority.validity)?, &self.key);
        Ok((params.signed_by(&key, &issuer)?, key))
    }
}

fn params(name: &str, validity: Validity) -> Result<CertificateParams, Error> {
    let at = |time: Timestamp| ASN1Time::from_timestamp(time.as_second()).map(|time| time.to_datetime());
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = at(validity.from).map_err(|_| Error::Time)?;
    params.not_after = at(validity.until).map_err(|_| Error::Time)?;
    Ok(params)
}

fn encoded(certificate: &CertificateDer<'_>) -> String {
    let block = Pem::new("CERTIFICATE", certificate.to_vec());
    pem::encode_config(&block, EncodeConfig::new().set_line_ending(LineEnding::LF))
}
