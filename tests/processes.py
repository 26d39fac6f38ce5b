"""Commands as several processes on the loopback: started together, their output kept, killed hard after a limit."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from binaries import Fork

REPOSITORY = Path(__file__).resolve().parents[1]
LIMIT = 240  # seconds


class Ended(NamedTuple):
    """How a process ended.

    Attributes:
        status: negative for the signal that killed it.
        said: what it wrote, to standard output and error.
        peak: of its memory, in MiB.
    """

    status: int
    said: str
    peak: float


class Group:
    """Processes of one command, which have begun.

    Those that are `warm` are forks of one process that has made the imports, which take longer than many a command;
    they do not tear the interpreter down when they end, so that they tell of results, not of how a process ends.
    """

    def __init__(self, folder: Path, command: str, flags: Sequence[Sequence[str]], warm: bool = False) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        environment = os.environ | {"XLA_FLAGS": "", "PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1"}
        self._logs = [folder / f"log_{at}.txt" for at in range(len(flags))]
        self._processes: list[subprocess.Popen | Fork] = []
        for at, (log, own) in enumerate(zip(self._logs, flags, strict=True)):
            place = [f"--coordinator=127.0.0.1:{port}", f"--num_processes={len(flags)}", f"--process_id={at}"]
            place = place if len(flags) > 1 else []
            if warm:
                self._processes.append(Fork(f"experiments.{command}", [*place, *own], log))
                continue
            with log.open("wb") as file:
                self._processes.append(
                    subprocess.Popen(
                        [sys.executable, "-m", f"experiments.{command}", *place, *own],
                        stdout=file, stderr=file, stdin=subprocess.DEVNULL, env=environment, cwd=REPOSITORY,
                    )
                )  # fmt: skip

    def kill(self, at: int, number: signal.Signals = signal.SIGKILL) -> None:
        """Kills one of them; by SIGKILL, so that it has no say in it."""
        self._processes[at].send_signal(number)

    def said(self, at: int) -> str:
        """What one of them wrote so far."""
        return self._logs[at].read_text(encoding="utf-8", errors="replace")

    def over(self) -> bool:
        """Whether one of them has ended."""
        return any(os.waitid(os.P_PID, one.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) for one in self._processes)

    def wait(self) -> list[Ended]:
        """Their ends."""
        ended: dict[int, int] = {}
        peaks = [0.0] * len(self._processes)
        until = time.monotonic() + LIMIT
        while len(ended) < len(self._processes):
            if time.monotonic() > until:
                for process in self._processes:
                    process.kill()
            for at, process in enumerate(self._processes):
                peaks[at] = max(peaks[at], _peak(process.pid))
                status = process.poll()
                if status is not None:
                    ended[at] = status
            time.sleep(0.02)
        return [Ended(ended[at], self.said(at), peaks[at]) for at in range(len(ended))]


def run(folder: Path, command: str, *flags: str, number: int = 2, warm: bool = False) -> list[Ended]:
    """Runs a command as so many processes, all with the same flags."""
    return Group(folder, command, [flags] * number, warm).wait()


def _peak(pid: int) -> float:
    """The most memory, in MiB, that a process has had so far; what `wait4` says is at least what its parent had."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    return max((int(line.split()[1]) / 2**10 for line in status.splitlines() if line.startswith("VmHWM")), default=0.0)
