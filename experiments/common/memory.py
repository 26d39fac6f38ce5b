"""How much memory this process has needed."""

import re
import resource
import sys
from pathlib import Path

MIB = 2**20


def peak_memory() -> float:
    """The most that this process has had in main memory until now, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss of a process may be that of the one that started it
        found = re.search(r"VmHWM:\s*(\d+) kB", status.read_text())
        if found is not None:
            return int(found[1]) * 1024 / MIB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / MIB
