"""Progress bars for leveret.ProcessExecutor(on_progress=...): of tqdm, or of rich."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from .errors import Status, Unavailable


class _Bar:
    """A progress bar as a callback, which is shown until its `with` block ends."""

    def __enter__(self) -> Any:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        raise NotImplementedError


class TqdmBar(_Bar):
    """on_progress= of an executor: a bar of tqdm, with the number of failures behind it.

    desc: what stands in front of it. options: others of tqdm.auto.tqdm. Raises Unavailable when
    tqdm is not installed.
    """

    def __init__(self, desc: str | None = None, **options: Any) -> None:
        try:
            from tqdm.auto import tqdm  # type: ignore[import-untyped,unused-ignore]
        except ImportError as error:
            text = "a bar of tqdm needs the package tqdm: pip install tqdm"
            raise Unavailable(text, Status.UNAVAILABLE) from error
        self.bar = tqdm(**{"total": 0, "desc": desc, **options})

    def __call__(self, done: int, failed: int, total: int) -> None:
        is_cut = total < (self.bar.total or 0)  # by what was taken back: update() need not show it
        self.bar.total = total
        if failed:
            self.bar.set_postfix(failed=failed, refresh=False)
        self.bar.update(done - self.bar.n)
        if is_cut:
            self.bar.refresh()

    def close(self) -> None:
        self.bar.close()


class RichBar(_Bar):
    """The same with rich.

    description: the text before the bar. progress: a rich.progress.Progress to add the bar to; else
    one of its own. Raises Unavailable when rich is not installed.
    """

    def __init__(self, description: str = "", progress: Any = None) -> None:
        try:
            from rich.progress import Progress
        except ImportError as error:
            text = "a bar of rich needs the package rich: pip install rich"
            raise Unavailable(text, Status.UNAVAILABLE) from error
        self.is_own = progress is None
        self.progress = Progress() if progress is None else progress
        self.description = description
        self.task = self.progress.add_task(description, total=None)
        if self.is_own:
            self.progress.start()

    def __call__(self, done: int, failed: int, total: int) -> None:
        text = f"{self.description} ({failed} failed)".strip() if failed else self.description
        self.progress.update(self.task, completed=done, total=total, description=text)

    def close(self) -> None:
        if self.is_own:
            self.progress.stop()
