"""A mail server on loopback with the subset of SMTP needed for sending; stores the mails it accepts."""

from __future__ import annotations

import base64
import contextlib
import socketserver
import threading
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage
from types import TracebackType

USER, PASSWORD = "demo@example.com", "demo-password-0123"


@dataclass(frozen=True, slots=True)
class Mail:
    """An accepted mail: sender, recipients and content."""

    sender: str
    recipients: tuple[str, ...]
    content: EmailMessage


class SmtpServer:
    """The mail server, as a context manager.

    Attributes:
        taken: Accepted mails, in order.
        fault: The fault: empty, ``full`` (552 after the text), ``silent`` (accepts the text and closes the connection
            without an answer), ``busy`` (421 immediately).
    """

    def __init__(self) -> None:
        self.taken: list[Mail] = []
        self.fault = ""
        owner = self

        class Session(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(ConnectionError):
                    _Conversation(owner, self).hold()

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Session)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> SmtpServer:
        """Start serving."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    @property
    def port(self) -> int:
        """The port on 127.0.0.1."""
        return int(self._server.server_address[1])

    def channel(self, name: str = "email", to: str = "reader@example.com", password: str = PASSWORD) -> str:
        """Return the channel in the form of the setting."""
        account = f"{USER.replace('@', '%40')}:{password}"
        return f"{name}=email+smtp://{account}@127.0.0.1:{self.port}?from={USER}&to={to}"


class _Conversation:
    def __init__(self, server: SmtpServer, session: socketserver.StreamRequestHandler) -> None:
        self._server, self._session = server, session
        self._known, self._sender = False, ""
        self._recipients: list[str] = []

    def hold(self) -> None:
        """Answer until the client closes the connection."""
        if self._server.fault == "busy":
            self._say("421 try again later")
            return
        self._say("220 demo")
        while line := self._session.rfile.readline():
            command, _, rest = line.decode("utf-8", "replace").strip().partition(" ")
            if not self._obey(command.upper(), rest):
                return

    def _obey(self, command: str, rest: str) -> bool:
        if command == "EHLO":
            self._say("250-demo\r\n250-8BITMIME\r\n250 AUTH PLAIN")
        elif command == "AUTH":
            given = rest.removeprefix("PLAIN").strip()
            self._known = base64.b64decode(given).split(b"\0")[1:] == [USER.encode(), PASSWORD.encode()]
            self._say("235 welcome" if self._known else "535 5.7.8 wrong account or password")
        elif command == "MAIL":
            self._sender, self._recipients = _address(rest), []
            self._say("250 ok" if self._known else "530 authentication required")
        elif command == "RCPT":
            known = not _address(rest).startswith("nobody@")
            self._recipients += [_address(rest)] * known
            self._say("250 ok" if known else "550 no such user")
        elif command == "DATA":
            return self._take()
        elif command == "QUIT":
            self._say("221 bye")
            return False
        else:
            self._say("250 ok" if command in ("RSET", "NOOP") else "502 not here")
        return True

    def _take(self) -> bool:
        self._say("354 go on")
        lines: list[bytes] = []
        while (line := self._session.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line.removeprefix(b"."))
        if self._server.fault == "full":
            self._say("552 mailbox full")
            return True
        content = message_from_bytes(b"".join(lines), policy=policy.default)
        self._server.taken.append(Mail(self._sender, tuple(self._recipients), content))
        if self._server.fault == "silent":
            return False
        self._say("250 taken")
        return True

    def _say(self, line: str) -> None:
        self._session.wfile.write(f"{line}\r\n".encode())


def _address(rest: str) -> str:
    return rest.partition("<")[2].partition(">")[0]
