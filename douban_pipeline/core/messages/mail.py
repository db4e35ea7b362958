"""The e-mail channel: one message to one or more addresses by SMTP."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime

from douban_pipeline.core.messages.delivery import DEADLINE_SECONDS
from douban_pipeline.core.messages.types import DeliveryError, Message, Part

_MOST_SUBJECT = 200


@dataclass(frozen=True, slots=True)
class MailServer:
    """Connection to a mail server.

    Attributes:
        host: Its name.
        port: Its port.
        user: Account; empty for none.
        password: Its password.
        security: ``tls`` from the first byte, ``starttls``, or ``none``, which is allowed for this machine only.
    """

    host: str
    port: int
    user: str = ""
    password: str = field(default="", repr=False)
    security: str = "starttls"


@dataclass(frozen=True, slots=True)
class MailChannel:
    """The channel: plain text, never cut. ``Message-ID`` is the message's own, so that clients detect a duplicate."""

    name: str
    server: MailServer
    sender: str
    recipients: Sequence[str]
    seconds: float = DEADLINE_SECONDS
    kind: str = "email"
    per_minute: int = 60
    keyed: bool = False

    def parts(self, message: Message) -> Sequence[Part]:
        """Return the message as one piece."""
        return [Part(message, " ".join(message.title.split())[:_MOST_SUBJECT], message.text)]

    def send(self, part: Part, *, now: datetime) -> str:
        """Send ``part`` once, to all recipients; see `Channel.send`.

        Refused recipients are listed in the return value; an error is raised if the server refuses all of them.
        """
        content = self._written(part, now)
        handed_over = False
        try:
            client = self._opened()
            try:
                refused = self._address(client)
                handed_over = True
                # Raises SMTPDataError if the server rejects the data; otherwise the server's reply is in the code.
                code, _ = client.data(content)
            finally:
                with suppress(smtplib.SMTPException, OSError):
                    client.quit()
        except smtplib.SMTPResponseException as error:
            raise DeliveryError(f"邮件服务器拒收，SMTP {error.smtp_code}", reached=True) from None
        except (smtplib.SMTPException, OSError) as error:
            what = "没有确认收到邮件" if handed_over else "连接不上邮件服务器"
            raise DeliveryError(f"{what}（{type(error).__name__}）", reached=False, uncertain=handed_over) from None
        if code != 250:
            raise DeliveryError(f"邮件服务器拒收，SMTP {code}", reached=True)
        return f"SMTP {code}" + (f"，{refused} 个收件人被拒" if refused else "")

    def _opened(self) -> smtplib.SMTP:
        server = self.server
        context = ssl.create_default_context()
        if server.security == "tls":
            client: smtplib.SMTP = smtplib.SMTP_SSL(server.host, server.port, timeout=self.seconds, context=context)
        else:
            client = smtplib.SMTP(server.host, server.port, timeout=self.seconds)
        try:
            if server.security == "starttls":
                client.starttls(context=context)
            if server.user:
                client.login(server.user, server.password)
        except BaseException:
            client.close()
            raise
        return client

    def _address(self, client: smtplib.SMTP) -> int:
        """Send the addresses of sender and recipients; return how many recipients were refused."""
        client.ehlo_or_helo_if_needed()
        code, reply = client.mail(self.sender)
        if code != 250:
            raise smtplib.SMTPResponseException(code, reply)
        refusals = [code for code in (client.rcpt(each)[0] for each in self.recipients) if code not in (250, 251)]
        if len(refusals) == len(self.recipients):
            raise smtplib.SMTPResponseException(refusals[0], b"")
        return len(refusals)

    def _written(self, part: Part, now: datetime) -> bytes:
        mail = EmailMessage()
        mail["Subject"] = part.title
        mail["From"] = self.sender
        mail["To"] = ", ".join(self.recipients)
        mail["Date"] = format_datetime(now)
        if part.message.key:
            mail["Message-ID"] = f"<{part.message.key}.{self.name}@{self.sender.rpartition('@')[2]}>"
        text = "\n\n".join(line for line in (part.text or part.title, part.message.url) if line)
        mail.set_content(text, cte="base64")
        return mail.as_bytes()
