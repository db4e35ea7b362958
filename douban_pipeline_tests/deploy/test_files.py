"""What stands in `deploy/` is whole, agrees with the code and with itself, and holds no secret."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess

import pytest
import typer.main
import yaml

from douban_pipeline.__main__ import app
from douban_pipeline.douban.settings import PREFIX, Settings
from douban_pipeline.douban.store.tables import own_tables
from douban_pipeline.ops.workspace import server_variables, workspace_for
from douban_pipeline.serve.middleware import Forwarding
from douban_pipeline.serve.settings import ServeSettings
from douban_pipeline.tmdb.graph.target import OLDEST_NEO4J
from douban_pipeline_tests.deploy.files import (
    COMMON,
    DEPLOY,
    INSTALLED,
    LOCATIONS,
    SERVICES,
    UNITS,
    environment,
    installed_at,
    text_of,
    unit,
)
from douban_pipeline_tests.documents import fences, outline
from douban_pipeline_tests.harness.fixtures.library import GivenSettings

GUIDES = ("README.md", "README.zh-CN.md")


def variables_of(*systems: str) -> set[str]:
    """Return the variables that the instance and the workspace of systems name, outside of comments."""
    texts = text_of("dagster.yaml"), workspace_for(systems)
    lines = [line for text in texts for line in text.splitlines() if not line.lstrip().startswith("#")]
    return set(re.findall(r"env: (\w+)", "\n".join(lines)))


# --- the environment --------------------------------------------------------------------------------------------------


def test_the_example_has_every_variable_that_is_needed_and_no_secret():
    given = environment()
    ours = {name.removeprefix(PREFIX).lower(): value for name, value in given.items() if name.startswith(PREFIX)}
    assert set(ours) <= set(Settings.model_fields)
    settings = GivenSettings(**ours)
    assert settings.dry_run
    named = variables_of("douban", "feeds")
    assert {name: given[name] for name in server_variables(["douban", "feeds"])} == server_variables(
        ["douban", "feeds"]
    )
    others = {"DAGSTER_HOME"}
    assert {name for name in given if not name.startswith(PREFIX)} == named | others
    assert [given[name] for name in given if "PASSWORD" in name] == ["PASSWORD"]
    assert ":PASSWORD@" in given["DOUBAN_PIPELINE_DATABASE_URL"]


def test_a_shell_reads_the_example_as_systemd_does(tmp_path):
    script = f"set -a; . {DEPLOY / 'env.example'}; env -0"
    output = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True, env={}).stdout
    read = dict(item.split("=", 1) for item in output.split("\0") if item)
    assert {name: read.get(name) for name in environment()} == environment()


# --- systemd ----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_takes_every_unit(tmp_path):
    shutil.copytree(UNITS, tmp_path, dirs_exist_ok=True)
    for path in tmp_path.glob("*.service"):
        path.write_text(installed_at(path.read_text(encoding="utf-8")), encoding="utf-8")
    names = sorted(str(path) for path in tmp_path.glob("douban-pipeline*.*") if path.is_file())
    assert len(names) == len(SERVICES) + 3
    result = subprocess.run(
        ["systemd-analyze", "verify", *names],
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
        capture_output=True,
        text=True,
    )
    ours = [line for line in result.stderr.splitlines() if "douban" in line]
    # The user and its folders come with the installation.
    assert ours == []
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("name", SERVICES)
def test_no_service_has_more_rights_than_it_needs(name):
    service = unit(name)["Service"]
    assert service["User"] == "douban"
    assert service["EnvironmentFile"] == "/etc/douban_pipeline/env"
    assert (service["NoNewPrivileges"], service["ProtectSystem"], service["PrivateTmp"]) == ("yes", "strict", "yes")
    assert service["CapabilityBoundingSet"] == ""
    command = service["ExecStart"]
    assert command.startswith(f"{INSTALLED}/.venv/bin/")
    assert re.findall(r"-h (\S+)", command) in ([], ["127.0.0.1"])
    assert bool(re.findall(r" -p ", command)) == bool(re.findall(r" -h ", command))
    if service["Type"] != "oneshot":
        assert service["Restart"] == "always"


def test_what_must_be_writable_is():
    """ProtectSystem=strict leaves a service just its state folders: those that the environment names."""
    given = environment()
    folders = {f"/var/lib/{name}" for name in unit("code")["Service"]["StateDirectory"].split()}
    assert folders == {given["DAGSTER_HOME"], given["DOUBAN_PIPELINE_HOME"]}
    backup = re.search(r"backup (\S+)", unit("backup")["Service"]["ExecStart"])
    assert backup is not None
    assert backup.group(1) == f"{given['DOUBAN_PIPELINE_HOME']}/backups"
    assert unit("backup")["Service"]["StateDirectory"] == "douban_pipeline/backups"
    assert "StateDirectoryMode=0750" in COMMON.read_text(encoding="utf-8")


def test_no_webserver_keeps_a_connection_that_a_restart_of_the_database_broke():
    """A launch through a broken one is lost; `test_lost_runs.py` launches with these options."""
    for name in ("webserver", "viewer"):
        assert re.findall(r"--db-pool-recycle (\d+)", unit(name)["Service"]["ExecStart"]) == ["1"]
    assert yaml.safe_load(text_of("kubernetes/values.yaml"))["dagsterWebserver"]["dbPoolRecycle"] == 1


# --- containers -------------------------------------------------------------------------------------------------------


def compose() -> dict:
    return yaml.safe_load(text_of("compose.yaml"))


def test_compose_publishes_on_loopback_only_and_runs_nothing_as_root():
    services = compose()["services"]
    published = [port for service in services.values() for port in service.get("ports", [])]
    assert published == ["127.0.0.1:8780:8780", "127.0.0.1:3000:3000", "127.0.0.1:3001:3001"]
    for name in (*LOCATIONS, "comment-worker", "serve", "webserver", "viewer", "daemon", "tools"):
        service = services[name]
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert service["env_file"] == [".env"]
        assert "healthcheck" in service or name in ("comment-worker", "tools")
        assert service["depends_on"]["postgres"] == {"condition": "service_healthy"}
    assert re.search(r"^USER 10001$", text_of("Dockerfile"), re.MULTILINE)


def test_the_graph_in_a_container_is_new_enough_and_waited_for():
    services = compose()["services"]
    name, _, version = services["neo4j"]["image"].partition(":")
    assert name == "neo4j"
    assert tuple(map(int, version.partition("-")[0].split("."))) >= OLDEST_NEO4J
    assert "ports" not in services["neo4j"]
    assert services["neo4j"]["profiles"] == ["neo4j"]
    assert services["tmdb"]["depends_on"]["neo4j"] == {"condition": "service_healthy", "required": False}
    assert services["neo4j"]["volumes"][0].partition(":")[0] in compose()["volumes"]
    stateful, service = yaml.safe_load_all(text_of("kubernetes/neo4j.yaml"))
    [container] = stateful["spec"]["template"]["spec"]["containers"]
    assert container["image"] == services["neo4j"]["image"]
    given = {each["name"]: each.get("value") for each in container["env"]}
    assert {name: given[name] for name in services["neo4j"]["environment"] if "memory" in name}.items() <= (
        services["neo4j"]["environment"].items()
    )
    assert stateful["spec"]["template"]["spec"]["enableServiceLinks"] is False
    assert service["spec"]["selector"] == stateful["spec"]["template"]["metadata"]["labels"]


def in_container(command: str) -> str:
    """Return a unit's command as a container runs it."""
    return command.replace("127.0.0.1", "0.0.0.0").replace("${DAGSTER_HOME}", environment()["DAGSTER_HOME"])


def test_containers_run_what_the_units_run():
    services = compose()["services"]
    for name in ("comment-worker", "serve", "webserver", "viewer", "daemon"):
        installed = unit(name)["Service"]["ExecStart"].removeprefix(f"{INSTALLED}/.venv/bin/")
        assert " ".join(services[name]["command"]) == in_container(installed)
    [code] = re.findall(r"^CMD (\[.*\])$", text_of("Dockerfile"), re.MULTILINE)
    wanted = unit("code")["Service"]["ExecStart"].removeprefix(f"{INSTALLED}/.venv/bin/")
    wanted = wanted.replace("127.0.0.1", "0.0.0.0").replace("${DAGSTER_CODE_PORT}", "4000")
    assert " ".join(yaml.safe_load(code)) == wanted
    for name, port in (("feeds", "4001"), ("digest", "4002"), ("tmdb", "4003"), ("comments", "4004")):
        location = unit(name)["Service"]["ExecStart"].removeprefix(f"{INSTALLED}/.venv/bin/")
        location = location.replace("127.0.0.1", "0.0.0.0").replace(f"${{DAGSTER_{name.upper()}_PORT}}", port)
        assert " ".join(services[name]["command"]) == location


def test_the_service_in_a_container_counts_visitors_by_the_address_that_the_proxy_names():
    pod = next(yaml.safe_load_all(text_of("kubernetes/services.yaml")))["spec"]["template"]["spec"]
    given = {each["name"]: each["value"] for each in pod["containers"][0]["env"]}
    for trusted in (compose()["services"]["serve"]["environment"], given):
        seen = []

        async def app(scope, receive, send, seen=seen):
            seen.append(scope["client"][0])

        forged = [(b"x-forwarded-for", b"198.51.100.9, 203.0.113.7")]
        scope = {"type": "http", "scheme": "http", "client": ("172.18.0.1", 4711), "headers": forged}
        proxies = ServeSettings(_env_file=None, proxies=trusted["DOUBAN_PIPELINE_SERVE_PROXIES"]).proxy_networks
        asyncio.run(Forwarding(app, proxies)(scope, None, None))
        assert seen == ["203.0.113.7"]


def test_nginx_overwrites_whose_request_it_is_wherever_the_service_is_behind_it():
    locations = re.findall(r"^    location [^{]*\{\n(.*?)^    \}", text_of("nginx.conf"), re.MULTILINE | re.DOTALL)
    served = [body for body in locations if "proxy_pass http://127.0.0.1:8780;" in body]
    assert len(served) == 4
    for body in served:
        assert re.search(r"proxy_set_header X-Forwarded-For +\$remote_addr;", body), body
        assert re.search(r"proxy_set_header X-Remote-User +(\$remote_user|\"\");", body), body
    assert unit("serve")["Service"]["Environment"] == "DOUBAN_PIPELINE_SERVE_PROXIES=127.0.0.1"


def test_compose_sets_every_variable_that_the_instance_and_the_workspace_name():
    needed = variables_of("douban", "feeds", "digest", "tmdb", "comments")
    given = set(compose()["services"]["code"]["environment"]) | set(environment())
    assert needed <= given
    secrets = re.findall(r"\$\{(\w+):\?", text_of("compose.yaml"))
    assert set(secrets) <= set(environment())


def test_the_image_is_made_of_what_is_there_and_of_no_more():
    allowed = re.findall(r"^!(.*)$", text_of("Dockerfile.dockerignore"), re.MULTILINE)
    copied = re.findall(r"^COPY (?:--chown=\S+ )?(?!--from)(.*) \S+$", text_of("Dockerfile"), re.MULTILINE)
    assert {name for line in copied for name in line.split()} == set(allowed)
    for name in allowed:
        assert (DEPLOY.parent / name).exists()


# --- the guide --------------------------------------------------------------------------------------------------------


def test_both_guides_have_the_same_sections_and_commands():
    english, chinese = (text_of(path) for path in GUIDES)
    outlines = [outline(text) for text in (english, chinese)]
    assert outlines[0] == outlines[1]

    def commands(text: str) -> list[tuple[str, str]]:
        return [(language, re.sub(r" *#.*", "", body)) for language, body in fences(text)]

    assert commands(english) == commands(chinese)


@pytest.mark.parametrize("path", GUIDES)
def test_the_guide_names_only_what_exists(path):
    guide = text_of(path)
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", guide) if not link.startswith("http")]
    written_by_others = {"celery/README.md", "kubernetes/README.md"}
    assert [link for link in links if link not in written_by_others and not (DEPLOY / link).exists()] == []
    commands = set(re.findall(r"douban-pipeline ([a-z]+)\b", "\n".join(body for _, body in fences(guide))))
    assert {"setup", "check", "grants", "backup"} <= commands
    assert commands <= set(typer.main.get_command(app).commands)
    for file in ("nginx.conf", "logrotate.conf", "compose.yaml", "env.example", "workspace.yaml", "dagster.yaml"):
        assert file in guide, file


def test_grants_are_written_down_nowhere():
    """One command prints them; a copy would be out of date some day."""
    tables = {table.name for table in own_tables("mac_").metadata.sorted_tables}
    for path in DEPLOY.rglob("*"):
        if path.is_file():
            found = set(re.findall(r"GRANT ALL ON \S*?(mac_\w+)", path.read_text(encoding="utf-8")))
            assert not found & tables, path
