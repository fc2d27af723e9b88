"""A certificate for a server on loopback."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

__all__ = ["made_certificate"]

_WAIT = 60  # seconds


def made_certificate(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """A server's context with a certificate of its own for 127.0.0.1, and the file by which a client knows it.

    The ``openssl`` command makes it, so that the kit needs no package for it.

    Raises:
        RuntimeError: if there is no such command, or it fails.
    """
    if shutil.which("openssl") is None:
        raise RuntimeError("FakeKubernetes(tls=True) needs the `openssl` command: install it, or say tls=False")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    names = "subjectAltName=IP:127.0.0.1,DNS:localhost"
    asked = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    asked += ["-subj", "/CN=fake-kubernetes", "-addext", names, "-keyout", str(key), "-out", str(certificate)]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=_WAIT)
    if done.returncode:
        raise RuntimeError(f"openssl made no certificate: {done.stderr.strip()}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, certificate
