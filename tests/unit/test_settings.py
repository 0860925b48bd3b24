"""Where settings come from, which goes before which, and what a wrong one is answered."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from weft.errors import SettingsError
from weft.settings import EngineSettings, Project, Settings, load_settings, project_of


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project("p", "p", tmp_path)


def write(project: Project, text: str) -> None:
    (project.root / "weft.toml").write_text(text)


def test_nothing_set_is_the_embedded_database_and_the_built_in_times() -> None:
    settings = load_settings(environment={})
    assert settings == Settings()
    assert settings.database_url is None
    assert settings.engine == EngineSettings(
        lease=timedelta(seconds=60),
        renew=timedelta(seconds=15),
        grace=timedelta(seconds=10),
        value_limit=1_048_576,
    )


def test_a_flag_goes_before_the_environment_and_that_before_the_file(project: Project) -> None:
    write(project, '[database]\nurl = "postgresql://file/a"\n[worker]\nconcurrency = 1\n')
    environment = {"WEFT_DATABASE_URL": "postgresql://environment/a", "WEFT_CONCURRENCY": "2"}
    assert load_settings(project, environment={}).database_url == "postgresql://file/a"
    assert load_settings(project, environment=environment).database_url == "postgresql://environment/a"
    flagged = load_settings(project, database_url="postgresql://flag/a", concurrency=3, environment=environment)
    assert (flagged.database_url, flagged.concurrency) == ("postgresql://flag/a", 3)


def test_an_empty_variable_is_one_not_set(project: Project) -> None:
    write(project, '[database]\nurl = "postgresql://file/a"\n')
    assert load_settings(project, environment={"WEFT_DATABASE_URL": ""}).database_url == "postgresql://file/a"


def test_the_file_may_set_everything(project: Project) -> None:
    write(
        project,
        """
        project = { id = "k3", name = "Mail" }
        [database]
        folder = "pg"
        tools = "/opt/pg/bin"
        [worker]
        lease = "2m"
        renew = 20
        grace = "500ms"
        value_limit = "4 MiB"
        concurrency = 8
        [log]
        format = "json"
        """,
    )
    assert load_settings(project, environment={}) == Settings(
        data_folder=project.root / "pg",
        postgres_tools=Path("/opt/pg/bin"),
        concurrency=8,
        log_format="json",
        engine=EngineSettings(
            lease=timedelta(minutes=2),
            renew=timedelta(seconds=20),
            grace=timedelta(milliseconds=500),
            value_limit=4 * 1024**2,
        ),
    )


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ('[database]\n\nurll = "x"\n', "weft.toml:3: there is no setting database.urll.", "mean database.url?"),
        ("database.urll = 1\n", "weft.toml:1: there is no setting database.urll.", "database.url"),
        ("[wrker]\nlease = 1\n", "weft.toml:2: there is no setting wrker.lease.", "worker.lease"),
        ("zzz = 1\n", "weft.toml:1: there is no setting zzz.", "There are: project.id,"),
        ("[worker]\nlease = 0\n", "weft.toml:2: worker.lease cannot be 0.", "a time from 0.1 s to 24 h"),
        ("[worker]\nlease = true\n", "worker.lease cannot be True.", "a time"),
        ("[worker]\ngrace = 'soon'\n", "worker.grace cannot be 'soon'.", 'such as "90s"'),
        ("[worker]\nconcurrency = 0\n", "worker.concurrency cannot be 0.", "from 1 to 10000"),
        ("[worker]\nvalue_limit = '9 GiB'\n", "worker.value_limit cannot be '9 GiB'.", "from 1 KiB to"),
        ("[log]\nformat = 'xml'\n", "log.format cannot be 'xml'.", '"console" or "json"'),
        ("[project]\nid = 'a b'\n", "weft.toml:2: project.id cannot be 'a b'.", "ASCII letters"),
        ("[database]\nfolder = 5\n", "database.folder cannot be 5.", "the path of a folder"),
        ("[worker\n", "weft.toml:1:8: this is not TOML: ", None),
    ],
)
def test_a_wrong_file_is_answered_with_the_place_and_what_is_allowed(
    project: Project, text: str, message: str, hint: str | None
) -> None:
    write(project, text)
    with pytest.raises(SettingsError) as caught:
        load_settings(project, environment={})
    assert message in caught.value.message
    assert str(project.root / "weft.toml") in caught.value.message
    assert hint is None or hint in (caught.value.hint or "")
    assert caught.value.exit_status == 2


def test_a_file_that_is_not_text_is_named(project: Project) -> None:
    (project.root / "weft.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="is not UTF-8 text"):
        load_settings(project, environment={})


def test_a_weft_toml_that_is_a_folder_is_named(project: Project) -> None:
    (project.root / "weft.toml").mkdir()
    with pytest.raises(SettingsError, match=r"weft\.toml cannot be read: Is a directory"):
        project_of(project.root)


def test_a_wrong_variable_is_named() -> None:
    with pytest.raises(SettingsError, match="WEFT_LEASE cannot be 'ages'"):
        load_settings(environment={"WEFT_LEASE": "ages"})
    with pytest.raises(SettingsError, match="WEFT_CONCURRENCY cannot be 'many'"):
        load_settings(environment={"WEFT_CONCURRENCY": "many"})


def test_a_wrong_url_is_never_shown_since_it_may_hold_a_password() -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(database_url="mysql://me:secret@host/a", environment={})
    assert "secret" not in f"{caught.value.message} {caught.value.hint}"
    assert caught.value.message == "--database-url cannot be this value."


def test_a_lease_must_outlast_a_late_renewal() -> None:
    with pytest.raises(SettingsError, match="would lapse"):
        load_settings(environment={"WEFT_LEASE": "20s", "WEFT_RENEW": "15s"})


# --- projects ---------------------------------------------------------------------------------------------


def test_the_nearest_weft_toml_above_is_the_project(tmp_path: Path) -> None:
    (tmp_path / "weft.toml").write_text('[project]\nid = "outer"\n')
    inner = tmp_path / "a" / "src"
    inner.mkdir(parents=True)
    program = inner / "main.weft"
    program.touch()
    assert project_of(program) == Project("outer", "outer", tmp_path)
    (tmp_path / "a" / "weft.toml").write_text('[project]\nid = "k3f"\nname = "Mail"\n')
    assert project_of(program) == Project("k3f", "Mail", tmp_path / "a")
    assert project_of(tmp_path / "a") == project_of(program)


def test_the_name_identifies_a_project_without_an_id(tmp_path: Path) -> None:
    (tmp_path / "weft.toml").write_text('[project]\nname = "Night mail"\n')
    assert project_of(tmp_path) == Project("Night mail", "Night mail", tmp_path)


def test_a_file_outside_any_project_belongs_to_its_folder(tmp_path: Path) -> None:
    one, two = tmp_path / "one" / "demo", tmp_path / "two" / "demo"
    one.mkdir(parents=True)
    two.mkdir(parents=True)
    first, second = project_of(one / "a.weft"), project_of(two / "a.weft")
    assert first.name == second.name == "demo"
    assert first.root == one
    assert first.id.startswith("demo-")
    assert first.id != second.id
    assert first == project_of(one / "b.weft") == project_of(one)


def test_a_link_to_a_folder_is_the_same_project(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert project_of(tmp_path / "link" / "a.weft") == project_of(tmp_path / "real" / "a.weft")


def test_an_empty_weft_toml_still_marks_the_folder(tmp_path: Path) -> None:
    (tmp_path / "weft.toml").touch()
    (tmp_path / "src").mkdir()
    assert project_of(tmp_path / "src" / "main.weft").root == tmp_path


def test_reading_settings_imports_no_settings_library() -> None:
    code = "import sys, weft.settings; print(sys.modules.keys() & {'pydantic', 'tomllib', 'asyncio'})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
