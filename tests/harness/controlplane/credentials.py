"""Certificates and kubeconfigs: one authority per control plane, and what it has signed."""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
from typing import TYPE_CHECKING

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_LIFETIME = dt.timedelta(days=365)
_LOOPBACK = ipaddress.ip_address("127.0.0.1")
_SIGNS_CERTIFICATES = x509.KeyUsage(
    key_cert_sign=True,
    crl_sign=True,
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


class Authority:
    """A certificate authority; its key stays in the memory of this process unless asked for."""

    def __init__(self, name: str = "tutti-control-plane", *, rsa_key: bool = False) -> None:
        """``rsa_key`` is for controllers that read no other kind of key."""
        self._rsa_key = rsa_key
        self._key = self._new_key()
        self._name = _name(name)
        public = self._key.public_key()
        identifier = x509.SubjectKeyIdentifier.from_public_key(public)
        self._issued = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)
        self._certificate = (
            _builder(self._name, self._name, public)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_SIGNS_CERTIFICATES, critical=True)
            .add_extension(identifier, critical=False)
            # Controllers that renew their certificates look for the name here.
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    @property
    def certificate(self) -> str:
        """What a client trusts."""
        return _pem(self._certificate)

    @property
    def private_key(self) -> str:
        """What a controller needs that renews its own certificate."""
        return _private_pem(self._key)

    def _new_key(self) -> ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey:
        if self._rsa_key:
            return rsa.generate_private_key(public_exponent=65537, key_size=2048)
        return ec.generate_private_key(ec.SECP256R1())

    def client(self, user: str, group: str | None = None) -> dict[str, str]:
        """A kubeconfig's user entry that the API server knows as this user of this group."""
        key = ec.generate_private_key(ec.SECP256R1())
        signed = self._signed(_name(user, group), key, ExtendedKeyUsageOID.CLIENT_AUTH)
        return {"client-certificate-data": signed, "client-key-data": _private_pem(key)}

    def server(self, *names: str) -> tuple[str, str]:
        """A certificate for 127.0.0.1 and these DNS names, and its key."""
        key = self._new_key()
        usage = ExtendedKeyUsageOID.SERVER_AUTH
        signed = self._signed(_name(names[0] if names else "kube-apiserver"), key, usage, names)
        return signed, _private_pem(key)

    def _signed(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey,
        usage: x509.ObjectIdentifier,
        names: Sequence[str] = (),
    ) -> str:
        builder = _builder(subject, self._name, key.public_key())
        if usage == ExtendedKeyUsageOID.SERVER_AUTH:
            dns = [x509.DNSName(name) for name in ("localhost", *names)]
            known_as = x509.SubjectAlternativeName([*dns, x509.IPAddress(_LOOPBACK)])
            builder = builder.add_extension(known_as, critical=False)
        return _pem(
            builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(self._issued, critical=False)
            .sign(self._key, hashes.SHA256())
        )


def signing_key() -> str:
    """A fresh key that service account tokens are signed with."""
    return _private_pem(ec.generate_private_key(ec.SECP256R1()))


def write_private(path: Path, text: str) -> Path:
    """Write a file that only its owner reads."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(text)
    return path


def write_kubeconfig(path: Path, server: str, authority: str, user: Mapping[str, str]) -> Path:
    """Write a kubeconfig with one context and no path to any other file."""
    data = {k: _base64(v) if k.endswith("-data") else v for k, v in user.items()}
    cluster = {"server": server, "certificate-authority-data": _base64(authority)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "tutti", "cluster": cluster}],
        "users": [{"name": "tutti", "user": data}],
        "contexts": [{"name": "tutti", "context": {"cluster": "tutti", "user": "tutti"}}],
        "current-context": "tutti",
    }
    return write_private(path, yaml.safe_dump(content, sort_keys=False))


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _private_pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    ).decode()


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _name(common: str, organization: str | None = None) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    if organization is not None:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(parts)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey | rsa.RSAPublicKey
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        # An hour back: the clock may be set back between here and the first use.
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + _LIFETIME)
    )
