"""TLS for the operator API: a certificate and its key, tried before anything is started."""

import ssl
from dataclasses import dataclass

from forewarn.config import OperatorSettings
from forewarn.core.errors import Invalid


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """Two files, in PEM; the first may hold the certificates that lead to the root too."""

    certificate: str
    key: str

    def context(self) -> ssl.SSLContext:
        """Read the files as they are now; Invalid if they cannot be used."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            # A key with a passphrase would have OpenSSL ask at the terminal, where no person may be.
            context.load_cert_chain(self.certificate, self.key, password="")
        except OSError as error:  # what ssl raises is one too
            reason = error.strerror if type(error) is not ssl.SSLError and error.strerror else error
            raise Invalid(
                f"[operator] certificate {self.certificate} and key {self.key} cannot be used: {reason}"
            ) from None
        return context


def tls_of(settings: OperatorSettings) -> Tls | None:
    """Take what is set; None if TLS is not wanted."""
    certificate, key = settings.certificate, settings.key
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise Invalid("[operator] certificate and key: expected both or neither")
    return Tls(certificate=certificate, key=key)
