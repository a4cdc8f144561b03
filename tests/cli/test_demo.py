"""`make demo`'s main job: it ends by itself, claims only what it saw, and leaves nothing behind."""

from pathlib import Path

from tests.cli.running import tabwarden


def test_the_demo_tells_its_story_and_leaves_nothing(tmp_path: Path) -> None:
    before = {entry.name for entry in Path("/tmp").iterdir() if "tabwarden-demo-" in entry.name}  # noqa: S108
    done = tabwarden(tmp_path, "demo")
    assert done.status == 0, done.err
    for line in (
        "the pairing descriptor on disk is sealed",
        "read the page's visible text",
        "a hidden instruction in the page did not come along",
        "refused inside the seal: destination-denied",
        "the other site was never contacted",
        "its exact copy was refused",
        "the running action ended; nothing of it was released",
        "the chain of hashes is intact",
    ):
        assert line in done.out
    for phase in (
        "challenge",
        "decryption",
        "authorization",
        "audit",
        "dispatch",
        "projection",
        "encryption",
    ):
        assert phase in done.out
    after = {entry.name for entry in Path("/tmp").iterdir() if "tabwarden-demo-" in entry.name}  # noqa: S108
    assert after <= before
    assert done.err == ""
