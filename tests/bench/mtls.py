"""Mutual TLS 1.3 of equal strength: certificates and contexts.

SecP384R1MLKEM1024 for the keys, ML-DSA-87 for both sides' certificates, AES-256-GCM with SHA-384. pyOpenSSL
has no call for groups, so both processes read them from `mtls_openssl.cnf`, which `OPENSSL_CONF` names for
them alone. Each side pins the other's self-signed certificate, so that no chain is checked: the least that
TLS can cost.
"""

import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA87PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from OpenSSL import SSL

SUITE = "TLS_AES_256_GCM_SHA384"


def write_identity(folder: Path, name: str) -> int:
    """Make a key and a self-signed certificate, `<name>.key` and `<name>.pem`; gives its serial number."""
    key = MLDSA87PrivateKey.generate()
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, None)
    )
    # A file, because pyOpenSSL takes no ML-DSA key object; its file loader takes any key OpenSSL knows.
    private = folder / f"{name}.key"
    private.touch(0o600)
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (folder / f"{name}.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    return certificate.serial_number


def context(folder: Path, own: str, peer: str, *, server: bool) -> SSL.Context:
    """A context for one side, with its identity, its pinned peer and session tickets."""
    made = SSL.Context(SSL.TLS_SERVER_METHOD if server else SSL.TLS_CLIENT_METHOD)
    made.set_min_proto_version(SSL.TLS1_3_VERSION)
    made.set_tls13_ciphersuites(SUITE.encode())
    made.use_certificate_file(str(folder / f"{own}.pem"))
    made.use_privatekey_file(str(folder / f"{own}.key"))
    made.load_verify_locations(str(folder / f"{peer}.pem"))
    made.set_verify(SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT)
    # Tickets carry the session; the server keeps nothing. They need a session id context to be accepted.
    made.set_session_id(b"tabwarden-bench")
    made.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    return made
