"""Folders for the checkpoints of malleable jobs, one for each job. It outlives the job's workers, and belongs to one of
them at a time: it has that worker's name. One that is surely gone, and yet is not, finds nothing any more by the path
that it knows; what it holds open, be it a file or the folder itself, goes along with the folder."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import IO

import structlog

from ces_edge_agent.checkpoints.archive import Packed, newest, pack, unpack
from ces_edge_agent.runtimes.names import check_name
from ces_edge_agent.trees import remove_tree

log = structlog.get_logger()
_SPARE = ".restored"  # where a checkpoint is unpacked; no worker has such a name


class CheckpointFolders:
    """The owner of a job's folder is the user of its workers that write to it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o711)

    def owners(self) -> dict[str, int]:
        """Job -> the user who owns its folder."""
        return {job.name: found[0].stat().st_uid for job in self._jobs() if (found := _inside(job))}

    def give(self, job: str, key: str, uid: int, gid: int, checkpoint: IO[bytes] | None = None, limit: int = 0) -> Path:
        """The job's folder with what is in it, from now on of this worker. An empty one where its workers had another
        user before, since this one could not read what is in it. ``checkpoint``: an archive of ``limit`` bytes at most,
        instead of what is in it. Raises OSError, Refused, Unfit."""
        around = self._folder / check_name(job)
        around.mkdir(exist_ok=True, mode=0o711)
        folder = around / check_name(key)
        remove_tree(around / _SPARE)  # of an agent that was killed
        if checkpoint is not None:
            self._restore(around, folder, checkpoint, limit, (uid, gid))
        for each in _inside(around):
            if (owner := each.lstat().st_uid) != uid:
                log.warning(
                    "checkpoints are removed that belong to another user than the job's worker has now",
                    job=job,
                    worker=key,
                    owner=owner,
                    user=uid,
                )
                remove_tree(each)
        former = [each for each in _inside(around) if each != folder]
        if former and not folder.exists():
            os.rename(former[-1], folder)
        elif not folder.exists():
            folder.mkdir(mode=0o700)
            if os.geteuid() == 0:
                os.chown(folder, uid, gid)
        return folder

    def _restore(self, around: Path, folder: Path, checkpoint: IO[bytes], limit: int, owner: tuple[int, int]) -> None:
        """All of the checkpoint is there before the folder has its name."""
        for each in _inside(around):
            remove_tree(each)
        spare = around / _SPARE
        spare.mkdir(mode=0o700)
        try:
            unpack(checkpoint, spare, limit, *owner)
            if os.geteuid() == 0:
                os.chown(spare, *owner)
            os.rename(spare, folder)
        except BaseException:  # half of a checkpoint must not be taken for one
            remove_tree(spare)
            raise

    def pack(self, job: str, into: IO[bytes], limit: int, seen: str | None) -> Packed | None:
        """See the port. Raises OSError, Unfit."""
        around = self._folder / check_name(job)
        folders = _inside(around) if around.is_dir() else []
        packed = newest(folders[-1]) if folders else None
        if packed is None or packed.mark == seen:
            return None
        pack(folders[-1], packed.name, into, limit)
        return packed

    def keep(self, jobs: Collection[str]) -> None:
        """Remove all others'. Never raises."""
        for around in self._jobs():
            if around.name not in jobs:
                remove_tree(around)

    def _jobs(self) -> list[Path]:
        return sorted(self._folder.iterdir()) if self._folder.is_dir() else []


def _inside(around: Path) -> list[Path]:
    """The folders that a worker has or had, the oldest first."""
    named = (each for each in around.iterdir() if not each.name.startswith("."))
    return sorted(named, key=lambda each: each.lstat().st_mtime)
