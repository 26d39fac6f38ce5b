"""What the event files of TensorBoard hold."""

from collections import defaultdict

import pytest


def curves(folder):
    """name -> {step: values in the order in which they were written}, of all event files in a folder."""
    event_pb2 = pytest.importorskip("tensorboardX.proto.event_pb2")
    found = defaultdict(lambda: defaultdict(list))
    for path in sorted(folder.glob("events.out.tfevents.*"), key=lambda path: path.stat().st_mtime_ns):
        data = path.read_bytes()
        while data:  # length, its checksum, the event, its checksum
            length = int.from_bytes(data[:8], "little")
            event, data = event_pb2.Event.FromString(data[12 : 12 + length]), data[16 + length :]
            for value in event.summary.value:
                found[value.tag][event.step].append(value.simple_value)
    return {name: dict(steps) for name, steps in found.items()}
