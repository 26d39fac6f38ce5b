"""What the devices of a mesh send each other: bytes of the collectives in a compiled program, loops included."""

import re
from collections import Counter
from typing import Any

import jax
import numpy as np

KINDS = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"
SIZES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8, "u64": 8, "f64": 8}


def of_program(program: jax.stages.Wrapped, *arguments: Any) -> Counter[str]:
    """Bytes of results of each kind of collective that one call brings about on one device, and their "number"."""
    text = program.lower(*arguments).compile().as_text()
    assert text is not None  # every backend of ours has one
    bodies = dict(re.findall(r"^(?:ENTRY )?%([\w.\-]+) [^\n]*\{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL))
    (entry,) = re.findall(r"^ENTRY %([\w.\-]+)", text, re.MULTILINE)
    return _of_computation(entry, bodies)


def _of_computation(name: str, bodies: dict[str, str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for line in bodies[name].splitlines():
        collective = re.search(rf" = (.*?) ({KINDS})(?:-start)?\(", line)
        # a mesh whose axis has one device leaves groups of one
        if collective and not re.search(r"replica_groups=\{\{\d+\}[,}]", line):
            found[collective[2]] += _bytes(collective[1])
            found["number"] += 1
        loop = re.search(r" while\(.*body=%([\w.\-]+)", line)
        if loop:
            trips = re.search(r'"known_trip_count":\{"n":"(\d+)"', line)
            for kind, amount in _of_computation(loop[1], bodies).items():
                found[kind] += amount * (int(trips[1]) if trips else 1)
        branches = re.search(r" conditional\(.*branch_computations=\{([^}]*)\}", line)
        if branches:
            each = [_of_computation(branch.strip().lstrip("%"), bodies) for branch in branches[1].split(",")]
            largest: Counter[str] = max(each, key=Counter.total)
            found += largest
        for called in re.findall(r" (?:call|fusion)\(.*(?:calls|to_apply)=%([\w.\-]+)", line):
            found += _of_computation(called, bodies)
    return found


def _bytes(shapes: str) -> int:
    """Of a type as HLO writes it, such as (f32[3,4]{1,0}, s32[])."""
    total = 0
    for kind, lengths in re.findall(r"([a-z]+\d*)\[([\d,]*)\]", shapes):
        total += SIZES[kind] * int(np.prod([int(length) for length in lengths.split(",") if length], dtype=np.int64))
    return total
