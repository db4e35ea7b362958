"""The second step: a database that can be used, the CMS in it, and the account's rights."""

from __future__ import annotations

import os
from dataclasses import replace

from sqlalchemy import make_url

from douban_pipeline.cms.site_probe import CmsTables, NoRightsError, SiteProbe, probe_site
from douban_pipeline.core.database import open_engine
from douban_pipeline.core.database_urls import DatabaseError, parse_url
from douban_pipeline.core.errors import OperatingError
from douban_pipeline.core.files import replaced
from douban_pipeline.core.grants import MYSQL
from douban_pipeline.core.language import terminal_text
from douban_pipeline.ops import installation, installation_check
from douban_pipeline.ops.init.dialogue import Dialogue, required
from douban_pipeline.ops.init.new_installation import PREFIX, URL, Installation


def choose_database(site: Installation) -> None:
    """Ask for the database until it can be used, show what is there, and see to the account's rights."""
    dialogue, options = site.dialogue, site.options
    before = site.values.get(URL) or os.environ.get(URL, "")
    given = options.database_url or before
    while True:
        if options.database_url is None:
            given = _asked_url(dialogue, given)
        try:
            site.values[URL] = _library_url(given)
            probe = _probed(site)
            break
        except DatabaseError as error:
            if isinstance(error, NoRightsError):
                site.use()
                _show_grants(site)
            if not dialogue.asks:
                raise
            dialogue.say(f"  {error}")
            options = replace(options, database_url=None)
    dialogue.say(terminal_text("{server}, as {account}").format(server=probe.server, account=probe.account or "—"))
    if not probe.has_innodb:
        raise OperatingError(terminal_text("the server has no InnoDB, which our tables need"))
    table = _chosen_site(site, probe)
    if table is not None:
        site.values[PREFIX] = table.prefix
        dialogue.say(
            terminal_text("{prefix}vod: about {videos} videos, {engine}, {collation}").format(
                prefix=table.prefix, videos=table.videos, engine=table.engine, collation=table.collation
            )
        )
    site.use()
    _grant(site)


def _asked_url(dialogue: Dialogue, before: str) -> str:
    shown = make_url(before).render_as_string(hide_password=True) if before else ""
    prompt = terminal_text("The CMS's database, such as mysql://user@127.0.0.1:3306/maccms")
    given = dialogue.answer(prompt, shown, required, option="database-url")
    if given == shown:
        return before
    url = parse_url(given, setting="--database-url")
    if url.username and url.password is None and url.get_backend_name() in MYSQL:
        url = url.set(password=dialogue.secret(terminal_text("Password of {user}").format(user=url.username)) or None)
    return url.render_as_string(hide_password=False)


def _library_url(given: str) -> str:
    url = parse_url(given, setting="--database-url", backends=(*MYSQL, "sqlite"))
    if url.get_backend_name() in MYSQL:
        url = url.set(port=url.port or 3306)
    return url.render_as_string(hide_password=False)


def _probed(site: Installation) -> SiteProbe:
    engine = open_engine(site.values[URL], setting="--database-url", seconds=15)
    try:
        return probe_site(engine)
    finally:
        engine.dispose()


def _chosen_site(site: Installation, probe: SiteProbe) -> CmsTables | None:
    """Return the CMS that is meant; None where the account sees none, which the checks of rights explain.

    Raises:
        OperatingError: There is none with the prefix that was given.
    """
    by_prefix = {each.prefix: each for each in probe.sites}
    wanted = site.options.table_prefix if site.options.table_prefix is not None else site.values.get(PREFIX)
    if not by_prefix:
        return None
    if wanted is None and len(by_prefix) > 1:
        prompt = terminal_text("Prefix of the CMS's tables; there is {prefixes}").format(prefixes=", ".join(by_prefix))
        wanted = site.dialogue.answer(prompt, next(iter(by_prefix)), str, option="table-prefix")
    wanted = next(iter(by_prefix)) if wanted is None else wanted
    if wanted not in by_prefix:
        problem = terminal_text("there is no table {name}; the prefixes that there are: {prefixes}")
        raise OperatingError(problem.format(name=f"{wanted}vod", prefixes=", ".join(map(repr, by_prefix))))
    return by_prefix[wanted]


def _grant(site: Installation) -> None:
    """Print the grants for the account in the URL, and wait until it has what it needs."""
    if make_url(site.values[URL]).get_backend_name() not in MYSQL:
        return
    while True:
        missing = [right for system in site.systems for right in installation_check.missing_rights(system)]
        _show_grants(site, quietly=not missing)
        if not missing:
            site.dialogue.say(terminal_text("It has the rights it needs: {path}").format(path=site.paths.grants))
            return
        some = ", ".join(missing[:4]) + (" …" if len(missing) > 4 else "")
        site.dialogue.say(terminal_text("It lacks {some}").format(some=some))
        prompt = terminal_text("Run these as the database's administrator (sudo mariadb < {path}), then press Enter")
        if not site.dialogue.wait(prompt.format(path=site.paths.grants)):
            raise OperatingError(
                terminal_text("run what is in {path} as the database's administrator, then `init` again").format(
                    path=site.paths.grants
                )
            )


def _show_grants(site: Installation, *, quietly: bool = False) -> None:
    """Write the statements for the account in the URL to a file and print them; ``quietly``: only if they are new."""
    text = "".join(f"{line}\n" for line in installation.grant_lines(site.systems))
    path = site.paths.grants
    if quietly and path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with replaced(path) as part:
        part.write_text(text, encoding="utf-8")
    site.dialogue.say(terminal_text("The least rights that it needs, also in {path}:").format(path=path))
    site.dialogue.say(text.rstrip())
