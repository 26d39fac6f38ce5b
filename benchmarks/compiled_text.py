"""What a compiled program does, read from its text: kernels, bytes, collectives and estimates, with loops multiplied.

An analysis of XLA counts the body of a loop once. Here each loop counts as often as it turns: by its
`known_trip_count`, or, as compilers for TPUs leave that out, by what its condition compares. A loop that turns until
the data say so counts once, and is counted in `unknown_loops`: all that it holds is then *per turn*.
"""

import dataclasses
import math
import re
from collections.abc import Iterable
from typing import NamedTuple

SIZES = {"pred": 1, "s4": 1, "u4": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s16": 2, "u16": 2}
SIZES |= {"s32": 4, "u32": 4, "f32": 4, "s64": 8, "u64": 8, "f64": 8, "c64": 8, "c128": 16}
COLLECTIVES = "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute", "collective-broadcast"
NO_KERNELS = {  # what takes no time of its own
    *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "partition-id", "replica-id"),
    *("opt-barrier", "domain", "add-dependency", "send", "recv"),
}
NO_WORK = {"AllocateBuffer", "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "AssumeGatherIndicesInBound"}
SLICES = {"dynamic-slice", "slice", "gather"}
SAME = {"bitcast", "copy", "reshape"}
ARRAY = re.compile(r"([a-z]+\d*(?:e\d+m\d+\w*)?)\[([\d,<=]*)\](?:\{([^{}]*)\})?")


class Instruction(NamedTuple):
    """A line of a computation.

    Attributes:
        type: of its result, with layouts.
        opcode: what it does.
        operands: names of other instructions.
        rest: its attributes.
        is_root: whether it is the result of the computation.
    """

    type: str
    opcode: str
    operands: tuple[str, ...]
    rest: str
    is_root: bool


Computation = dict[str, Instruction]


class Loop(NamedTuple):
    """How often a loop turns in a call, and the kernels of a turn, without those of loops within."""

    turns: float
    kernels: float


@dataclasses.dataclass(frozen=True)
class Cost:
    """What a call of a program, or of a part, comes to on one device.

    Attributes:
        cycles: that the compiler estimates for kernels; 0 where it says nothing.
        bytes: that kernels read from and write to the device's memory; of what is sliced, the slices.
        unestimated: of these, bytes of kernels without an estimate.
        kernels: fusions, calls of libraries, copies and the like that are started.
        collectives: exchanges with other devices.
        collective_bytes: of their results.
        unknown_loops: loops that count once, as their turns are not known.
        loops: all of them.
    """

    cycles: float = 0
    bytes: float = 0
    unestimated: float = 0
    kernels: float = 0
    collectives: float = 0
    collective_bytes: float = 0
    unknown_loops: int = 0
    loops: tuple[Loop, ...] = ()

    def plus(self, other: "Cost") -> "Cost":
        """Both."""
        return Cost(*(getattr(self, field.name) + getattr(other, field.name) for field in dataclasses.fields(self)))

    def in_loop(self, turns: float | None) -> "Cost":
        """As the body of a loop of so many turns; None where they are not known."""
        times = 1 if turns is None else turns
        inner = sum(loop.turns * loop.kernels for loop in self.loops)
        return Cost(
            cycles=times * self.cycles,
            bytes=times * self.bytes,
            unestimated=times * self.unestimated,
            kernels=times * self.kernels,
            collectives=times * self.collectives,
            collective_bytes=times * self.collective_bytes,
            unknown_loops=self.unknown_loops + (turns is None),
            loops=(
                Loop(times, self.kernels - inner),
                *(Loop(times * loop.turns, loop.kernels) for loop in self.loops),
            ),
        )

    def busiest_loop(self) -> Loop:
        """That which starts most kernels; all of the program as one turn where there is none."""
        return max(self.loops, key=lambda loop: loop.turns * loop.kernels, default=Loop(1, self.kernels))


def cost_of(text: str) -> Cost:
    """What a call of a compiled program comes to, by its text."""
    computations, entry = parsed(text)
    return _of_computation(entry, computations)


def parsed(text: str) -> tuple[dict[str, Computation], str]:
    """The computations of a compiled program by name, and the name of the one that it begins with."""
    computations: dict[str, Computation] = {}
    entry, current = "", None
    for line in text.splitlines():
        head = re.match(r"(ENTRY )?%?([\w.\-]+) \(.*\{\s*$", line)
        if head and not line.startswith(" "):
            current = computations.setdefault(head[2], {})
            entry = head[2] if head[1] else entry
        elif line.startswith("}"):
            current = None
        elif current is not None and " = " in line:
            name, instruction = _instruction(line)
            current[name] = instruction
    return computations, entry


def _instruction(line: str) -> tuple[str, Instruction]:
    left, right = re.sub(r"/\*.*?\*/", "", line).split(" = ", 1)
    end = _closing(right, 0) if right.startswith("(") else right.index(" ")
    type, right = right[:end], right[end:].lstrip()
    opening = right.index("(")
    end = _closing(right, opening)
    operands = tuple(re.findall(r"%([\w.\-]+)", right[opening:end]))
    rest = right[opening:] if right.startswith("constant") or right.startswith("parameter") else right[end:]
    return left.split("%")[-1].strip(), Instruction(type, right[:opening], operands, rest, "ROOT" in left)


def _closing(text: str, opening: int) -> int:
    """Behind the parenthesis that closes the one at `opening`."""
    depth = 0
    for at in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at + 1
    return len(text)


def bytes_of(type: str, *, everywhere: bool = False) -> int:
    """Of the arrays of a type that are in the device's memory; `everywhere` counts those within the chip, too."""
    total = 0
    for kind, lengths, layout in ARRAY.findall(type):
        if everywhere or not re.search(r"S\([1-9]\d*\)", layout):
            sizes = [int(length.strip("<=")) for length in lengths.split(",") if length]
            total += SIZES.get(kind, 1) * math.prod(sizes)
    return total


def _of_computation(name: str, computations: dict[str, Computation]) -> Cost:
    total, computation = Cost(), computations[name]
    for instruction in computation.values():
        total = total.plus(_of_instruction(instruction, computation, computations))
    return total


def _of_instruction(one: Instruction, computation: Computation, computations: dict[str, Computation]) -> Cost:
    kind = one.opcode.removesuffix("-start")
    if one.opcode in NO_KERNELS or one.opcode.endswith(("-done", "-update")):
        return Cost()
    if one.opcode == "while":
        body = _of_computation(_called(one, "body"), computations)
        return body.in_loop(turns_of(one, computation, computations))
    if one.opcode == "conditional":
        branches = re.search(r"branch_computations=\{([^}]*)\}", one.rest)
        pair = re.findall(r"(?:true|false)_computation=%([\w.\-]+)", one.rest)
        names = re.findall(r"%([\w.\-]+)", branches[1]) if branches else pair
        each = [_of_computation(branch, computations) for branch in names]
        return max(each, key=lambda cost: (cost.cycles, cost.bytes), default=Cost())
    if one.opcode == "call":
        return _of_computation(_called(one, "to_apply"), computations)
    if kind in COLLECTIVES:
        # a mesh whose axis has one device leaves groups of one
        if re.search(r"replica_groups=(\{\{\d+\}[,}]|\[\d+,1\])", one.rest):
            return Cost()
        return Cost(collectives=1, collective_bytes=_received(one))
    called = _called(one, "calls")
    within = _collectives_in(called, computations) if called else Cost()
    target = re.search(r'custom_call_target="([^"]*)"', one.rest)
    if target and target[1] in NO_WORK:
        return within
    found = re.search(r'"estimated_cycles":"(\d+)"', one.rest)
    if not found and not re.search(r"\[\d", one.type) and one.opcode != "custom-call" and not called:
        return within  # a scalar, which needs no kernel
    moved = _moved(one, computation, computations.get(called, {}))
    kernel = Cost(int(found[1]) if found else 0, moved, 0 if found else moved, kernels=1)
    return kernel.plus(within)


def _called(one: Instruction, attribute: str) -> str:
    found = re.search(rf"{attribute}=%?([\w.\-]+)", one.rest)
    return found[1] if found else ""


def _received(one: Instruction) -> int:
    """Bytes of the result of a collective; one that is started holds its operands beside it."""
    whole = bytes_of(one.type, everywhere=True)
    return whole // 2 if one.opcode in ("all-reduce-start", "collective-permute-start") and "(" in one.type else whole


def _collectives_in(name: str, computations: dict[str, Computation]) -> Cost:
    """Those that compilers have fused with other work, or started ahead."""
    total = Cost()
    for one in computations.get(name, {}).values():
        if one.opcode.removesuffix("-start") in COLLECTIVES:
            total = total.plus(_of_instruction(one, {}, computations))
        elif one.opcode in ("fusion", "call", "async-start"):
            inner = _called(one, "calls") or _called(one, "to_apply")
            total = total.plus(_collectives_in(inner, computations))
    return total


def _moved(one: Instruction, computation: Computation, fused: Computation) -> int:
    """Bytes that a kernel reads and writes; of what it slices or updates in place, the slices."""
    if fused:
        parameters = {
            int(found[1]): name
            for name, inner in fused.items()
            if inner.opcode == "parameter" and (found := re.match(r"\((\d+)\)", inner.rest))
        }
        read = sum(_read(parameters[number], fused) for number in parameters)
        root = next((inner for inner in fused.values() if inner.is_root), None)
        results: Iterable[Instruction] = []
        if root is not None:
            results = [fused[name] for name in root.operands] if root.opcode == "tuple" else [root]
        return read + sum(_written(result, fused) for result in results)
    operands = [computation[name].type for name in one.operands if name in computation]
    if one.opcode in SLICES:
        return 2 * bytes_of(one.type)
    if one.opcode == "dynamic-update-slice":
        return 2 * bytes_of(operands[1]) if len(operands) > 1 else bytes_of(one.type)
    if one.opcode == "copy-start":  # its type holds the copy, the original, and a signal
        copied = [found.group() for found in ARRAY.finditer(one.type)]
        return sum(map(bytes_of, copied[:2]))
    return bytes_of(one.type) + sum(map(bytes_of, operands))


def _read(name: str, fused: Computation) -> int:
    """Bytes of a parameter that a fusion reads."""
    whole = bytes_of(fused[name].type)
    total = 0
    for user_name, user in fused.items():
        if name not in user.operands:
            continue
        first = user.operands[0] == name
        if user.opcode in SLICES and first:
            total += bytes_of(user.type, everywhere=True)
        elif user.opcode == "dynamic-update-slice" and first:
            continue
        elif user.opcode == "bitcast":
            total += _read(user_name, fused)
        else:
            return whole
    return min(whole, total)


def _written(result: Instruction, fused: Computation) -> int:
    """Bytes of a result of a fusion."""
    whole = bytes_of(result.type)
    while result.opcode in SAME and result.operands and result.operands[0] in fused:
        result = fused[result.operands[0]]
    if result.opcode == "dynamic-update-slice" and result.operands[1] in fused:
        return min(whole, bytes_of(fused[result.operands[1]].type, everywhere=True))
    return whole


def turns_of(loop: Instruction, computation: Computation, computations: dict[str, Computation]) -> int | None:
    """How often a loop turns: as its text says, or from a counter that rises by a constant up to one."""
    known = re.search(r'"known_trip_count":\{"n":"(\d+)"', loop.rest)
    if known:
        return int(known[1])
    condition = computations.get(_called(loop, "condition"), {})
    body = computations.get(_called(loop, "body"), {})
    start = computation.get(loop.operands[0]) if loop.operands else None
    root = next((one for one in condition.values() if one.is_root), None)
    if root is None or root.opcode != "compare" or "direction=LT" not in root.rest or start is None:
        return None
    counter = condition[root.operands[0]]
    place = re.search(r"index=(\d+)", counter.rest)
    result = next((one for one in body.values() if one.is_root), None)
    if counter.opcode != "get-tuple-element" or place is None or result is None:
        return None
    if start.opcode != "tuple" or result.opcode != "tuple":
        return None
    carried = _Carried(start.operands, result.operands, body, computation)
    limit = _constant(root.operands[1], condition, carried)
    first = _constant(start.operands[int(place[1])], computation)
    step = body.get(result.operands[int(place[1])])
    while step is not None and step.opcode in SAME:
        step = body.get(step.operands[0])
    if limit is None or first is None or step is None or step.opcode != "add":
        return None
    sizes = [_constant(name, body, carried) for name in step.operands]
    size = next((size for size in sizes if size), None)
    return None if size is None else max(0, -(-(limit - first) // size))


class _Carried(NamedTuple):
    """What a loop carries: names before it and after each turn, and the computations that these are of."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    body: Computation
    outside: Computation

    def constant(self, place: int) -> int | None:
        """The whole number in a place that no turn changes."""
        kept = self.body.get(self.after[place])
        if kept is None or kept.opcode != "get-tuple-element" or f"index={place}," not in f"{kept.rest},":
            return None
        return _constant(self.before[place], self.outside)


def _constant(name: str, within: Computation, carried: _Carried | None = None) -> int | None:
    """The whole number that an instruction is."""
    one = within.get(name)
    while one is not None and one.opcode in SAME and one.operands:
        one = within.get(one.operands[0])
    if one is None:
        return None
    if one.opcode == "constant":
        found = re.match(r"\(\{?(-?\d+)\}?\)", one.rest)
        return int(found[1]) if found else None
    place = re.search(r"index=(\d+)", one.rest)
    if one.opcode == "get-tuple-element" and place and carried is not None:
        return carried.constant(int(place[1]))
    return None
