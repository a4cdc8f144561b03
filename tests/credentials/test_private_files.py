"""Folders and files that only we may use: every way in which they may not be so."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from tabwarden.errors import ConfigurationError
from tabwarden.private_files import ensure_private_directory, open_private_directory, open_private_file

Open = Callable[[Path], object]


def open_directory(path: Path) -> None:
    os.close(open_private_directory(path))


def read_file(path: Path) -> bytes:
    with os.fdopen(open_private_file(path, os.O_RDONLY), "rb") as stream:
        return stream.read()


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def no_leak() -> object:
    before = open_descriptors()
    yield
    assert open_descriptors() == before


@pytest.mark.usefixtures("no_leak")
class TestDirectory:
    def test_is_made_with_its_parents_closed_to_others(self, tmp_path: Path) -> None:
        made = ensure_private_directory(tmp_path / "a" / "b")
        assert made == tmp_path / "a" / "b"
        for folder in (made, made.parent):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert ensure_private_directory(made) == made

    def test_a_relative_path_becomes_absolute(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        assert ensure_private_directory("x") == tmp_path / "x"

    def test_is_not_made_unless_asked(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            open_directory(tmp_path / "absent" / "below")
        assert not (tmp_path / "absent").exists()

    @pytest.mark.parametrize("mode", [0o701, 0o710, 0o704, 0o770, 0o777, 0o1777])
    def test_open_to_others(self, tmp_path: Path, mode: int) -> None:
        folder = tmp_path / "x"
        folder.mkdir()
        folder.chmod(mode)
        with pytest.raises(ConfigurationError, match="open to other users: chmod 700"):
            ensure_private_directory(folder)
        assert stat.S_IMODE(folder.stat().st_mode) == mode

    def test_a_symbolic_link(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir(mode=0o700)
        (tmp_path / "link").symlink_to(tmp_path / "real")
        with pytest.raises(ConfigurationError, match="symbolic link: name the folder itself"):
            ensure_private_directory(tmp_path / "link")

    def test_a_dangling_symbolic_link_is_not_filled(self, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(ConfigurationError, match="symbolic link"):
            ensure_private_directory(tmp_path / "link")
        assert not (tmp_path / "elsewhere").exists()

    def test_our_own_link_on_the_way_is_followed(self, tmp_path: Path) -> None:
        (tmp_path / "real" / "below").mkdir(parents=True, mode=0o700)
        (tmp_path / "relative").symlink_to("real/../real")
        (tmp_path / "absolute").symlink_to(tmp_path / "relative")
        ensure_private_directory(tmp_path / "absolute" / "below")
        ensure_private_directory(tmp_path / "absolute" / "new")
        assert (tmp_path / "real" / "new").is_dir()

    def test_a_link_at_the_end_is_seen_behind_a_link_on_the_way(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "real" / "target").mkdir(mode=0o700)
        (tmp_path / "real" / "end").symlink_to("target")
        (tmp_path / "way").symlink_to("real")
        with pytest.raises(ConfigurationError, match="symbolic link: name the folder itself"):
            ensure_private_directory(tmp_path / "way" / "end")

    def test_a_circle_of_links_ends(self, tmp_path: Path) -> None:
        (tmp_path / "a").symlink_to("b")
        (tmp_path / "b").symlink_to("a")
        with pytest.raises(ConfigurationError):
            ensure_private_directory(tmp_path / "a" / "x")

    @pytest.mark.parametrize("mode", [0o777, 0o770, 0o720, 0o702])
    def test_a_folder_on_the_way_that_others_may_write(self, tmp_path: Path, mode: int) -> None:
        (tmp_path / "way" / "x").mkdir(parents=True, mode=0o700)
        (tmp_path / "way").chmod(mode)
        with pytest.raises(ConfigurationError, match="others may write"):
            ensure_private_directory(tmp_path / "way" / "x")

    def test_a_sticky_folder_on_the_way_is_fine(self, tmp_path: Path) -> None:
        (tmp_path / "way").mkdir()
        (tmp_path / "way").chmod(0o1777)
        ensure_private_directory(tmp_path / "way" / "x")

    def test_of_another_user(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "x").mkdir(mode=0o700)
        other = os.geteuid() + 54321
        monkeypatch.setattr(os, "geteuid", lambda: other)
        with pytest.raises(ConfigurationError, match="belongs to another user"):
            ensure_private_directory(tmp_path / "x")

    def test_a_file_in_its_place(self, tmp_path: Path) -> None:
        (tmp_path / "x").touch(mode=0o600)
        for path in (tmp_path / "x", tmp_path / "x" / "below"):
            with pytest.raises(ConfigurationError, match="not a folder"):
                ensure_private_directory(path)

    def test_a_folder_that_its_owner_may_not_read(self, tmp_path: Path) -> None:
        (tmp_path / "x").mkdir(mode=0o700)
        (tmp_path / "x").chmod(0)
        if os.geteuid() == 0:
            ensure_private_directory(tmp_path / "x")  # root may all the same
        else:
            with pytest.raises(ConfigurationError, match="cannot open"):
                ensure_private_directory(tmp_path / "x")


@pytest.mark.usefixtures("no_leak")
class TestFile:
    def make(self, tmp_path: Path, mode: int = 0o600) -> Path:
        file = tmp_path / "f"
        file.write_bytes(b"contents")
        file.chmod(mode)
        return file

    def test_is_opened_and_kept_from_children(self, tmp_path: Path) -> None:
        descriptor = open_private_file(self.make(tmp_path), os.O_RDONLY)
        assert not os.get_inheritable(descriptor)
        os.close(descriptor)

    def test_is_made_closed_to_others(self, tmp_path: Path) -> None:
        os.close(open_private_file(tmp_path / "new", os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600
        with pytest.raises(FileExistsError):
            open_private_file(tmp_path / "new", os.O_WRONLY | os.O_CREAT | os.O_EXCL)

    def test_absent(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            read_file(tmp_path / "absent")

    @pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o666])
    def test_open_to_others_is_refused_before_it_is_emptied(self, tmp_path: Path, mode: int) -> None:
        file = self.make(tmp_path, mode)
        with pytest.raises(ConfigurationError, match="open to other users"):
            open_private_file(file, os.O_WRONLY | os.O_TRUNC)
        assert file.read_bytes() == b"contents"

    def test_truncates_its_own(self, tmp_path: Path) -> None:
        file = self.make(tmp_path)
        os.close(open_private_file(file, os.O_WRONLY | os.O_TRUNC))
        assert file.read_bytes() == b""

    def test_a_symbolic_link(self, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(self.make(tmp_path))
        with pytest.raises(ConfigurationError, match="symbolic link"):
            read_file(tmp_path / "link")

    def test_a_dangling_link_makes_nothing(self, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(tmp_path / "made")
        with pytest.raises(ConfigurationError, match="symbolic link"):
            open_private_file(tmp_path / "link", os.O_WRONLY | os.O_CREAT)
        assert not (tmp_path / "made").exists()

    def test_a_hard_link(self, tmp_path: Path) -> None:
        (tmp_path / "other").hardlink_to(self.make(tmp_path))
        with pytest.raises(ConfigurationError, match="hard link"):
            read_file(tmp_path / "f")

    def test_a_fifo_does_not_hang(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "fifo", 0o600)
        for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR):
            with pytest.raises(ConfigurationError, match="not a regular file"):
                open_private_file(tmp_path / "fifo", flags)

    def test_a_folder(self, tmp_path: Path) -> None:
        for flags in (os.O_RDONLY, os.O_RDWR):
            with pytest.raises(ConfigurationError, match="not a regular file"):
                open_private_file(tmp_path, flags)

    def test_of_another_user(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file = self.make(tmp_path)
        other = os.geteuid() + 54321
        monkeypatch.setattr(os, "geteuid", lambda: other)
        with pytest.raises(ConfigurationError, match="another user"):
            read_file(file)
