//! TLS for both sides.

use std::fmt;
use std::sync::Arc;

use tokio_rustls::rustls::client::WantsClientCert;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{ClientConfig, ConfigBuilder, RootCertStore, ServerConfig};

use crate::error::{Error, Result};

/// What both sides must agree on before HTTP/2 begins.
const ALPN: &[u8] = b"h2";

/// The certificate of a server, and whose clients it accepts.
#[derive(Clone)]
pub struct ServerTls(pub(super) Arc<ServerConfig>);

impl ServerTls {
    /// A server with this certificate chain and private key, both in PEM.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for what is no such thing.
    pub fn new(certificates: &[u8], key: &[u8]) -> Result<Self> {
        ServerTls::build(certificates, key, None)
    }

    /// The same, for clients only that have a certificate of one of these authorities, in PEM.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    pub fn with_client_authority(certificates: &[u8], key: &[u8], authority: &[u8]) -> Result<Self> {
        ServerTls::build(certificates, key, Some(authority))
    }

    fn build(certificates: &[u8], key: &[u8], authority: Option<&[u8]>) -> Result<Self> {
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder =
            builder.with_safe_default_protocol_versions().map_err(|e| invalid("the TLS versions", e))?;
        let builder = match authority {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let provider = Arc::new(ring::default_provider());
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots(authority)?), provider)
                        .build()
                        .map_err(|error| invalid("the authority of clients", error))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder
            .with_single_cert(chain(certificates)?, private_key(key)?)
            .map_err(|error| invalid("the certificate and its key", error))?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(ServerTls(Arc::new(config)))
    }
}

/// Which servers a client trusts, and its own certificate.
#[derive(Clone)]
pub struct ClientTls(pub(super) Arc<ClientConfig>);

impl ClientTls {
    /// Trusts the authorities of this machine.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] when there are none.
    pub fn system() -> Result<Self> {
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            return Err(Error::InvalidArgument {
                reason: "this machine has no certificate authorities; install `ca-certificates` or name one"
                    .into(),
            });
        }
        Ok(ClientTls::build(trusting(roots)?.with_no_client_auth()))
    }

    /// Trusts these authorities alone, in PEM.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for what is no such thing.
    pub fn authority(authority: &[u8]) -> Result<Self> {
        Ok(ClientTls::build(trusting(roots(authority)?)?.with_no_client_auth()))
    }

    /// The same, and presents this certificate chain with its private key, all in PEM.
    ///
    /// # Errors
    ///
    /// As for [`authority`](Self::authority).
    pub fn with_certificate(authority: &[u8], certificates: &[u8], key: &[u8]) -> Result<Self> {
        let config = trusting(roots(authority)?)?
            .with_client_auth_cert(chain(certificates)?, private_key(key)?)
            .map_err(|error| invalid("the certificate and its key", error))?;
        Ok(ClientTls::build(config))
    }

    fn build(mut config: ClientConfig) -> Self {
        config.alpn_protocols = vec![ALPN.to_vec()];
        ClientTls(Arc::new(config))
    }
}

fn trusting(roots: RootCertStore) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder =
        builder.with_safe_default_protocol_versions().map_err(|e| invalid("the TLS versions", e))?;
    Ok(builder.with_root_certificates(roots))
}

fn chain(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>> {
    let found: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<std::result::Result<_, _>>()
        .map_err(|error| invalid("a certificate", error))?;
    if found.is_empty() {
        return Err(invalid("a certificate", "there is none in it"));
    }
    Ok(found)
}

fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|error| invalid("a private key", error))
}

fn roots(pem: &[u8]) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in chain(pem)? {
        roots.add(certificate).map_err(|error| invalid("an authority", error))?;
    }
    Ok(roots)
}

fn invalid(what: &str, error: impl fmt::Display) -> Error {
    Error::InvalidArgument { reason: format!("{what} cannot be used: {error}") }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerTls(..)")
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientTls(..)")
    }
}
