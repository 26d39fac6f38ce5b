"""Accelerators as their makers publish them, and how long a program has to take there at least.

| figure | source |
| --- | --- |
| memory, its bandwidth, products in bfloat16 of a TPU | Google Cloud's documentation of TPU v5e and v5p |
| the same of the H100 SXM, products in float32 and float64 | NVIDIA's data sheet of the H100 |
| clock of a TPU | from its products: v5e has 4 units of 128 × 128 multipliers, v5p 8 |
| elementwise operations of a TPU | per clock 4 of 8 × 128 numbers ("How to scale your model", Austin et al. 2025) |
| transcendental ones | 8 × 128 of each core of a TPU; of the H100 16 of each multiprocessor (CUDA programming guide) |

Full precision of float32 takes a TPU six products in bfloat16. float64 it has not got: limits of such programs are
those of float32 there, which nothing reaches. Arithmetic other than products counts at the rate of float32 in any type.
"""

import dataclasses

from benchmarks.flops import Work

LAUNCH = 4e-6  # seconds that starting a kernel takes on a GPU, as in docs/results/scaling.md


@dataclasses.dataclass(frozen=True)
class Chip:
    """One accelerator, or several of a kind.

    Attributes:
        name: in words.
        platform: tpu or gpu.
        topology: what its compiler calls it.
        number: of devices.
        memory: bytes of a device.
        bandwidth: bytes a second, of that.
        clock: of a TPU, per second.
        products: floating-point operations a second, of matrix products by type.
        elementwise, transcendental: operations a second.
    """

    name: str
    platform: str
    topology: str
    number: int
    memory: float
    bandwidth: float
    clock: float
    products: dict[str, float]
    elementwise: float
    transcendental: float


def _tpu(name: str, topology: str, number: int, kind: str) -> Chip:
    memory, bandwidth, products, cores, units = {
        "v5e": (16 * 2**30, 819e9, 197e12, 1, 4),
        "v5p": (95 * 2**30, 2765e9, 459e12, 2, 8),
    }[kind]
    clock = products / (units * 2 * 128 * 128)
    slow = products / 6
    rates = {"bfloat16": products, "mixed": products, "float32": slow, "float64": slow}
    lanes = cores * 8 * 128 * clock
    return Chip(name, "tpu", topology, number, memory, bandwidth, clock, rates, 4 * lanes, lanes)


def _h100(name: str, topology: str, number: int) -> Chip:
    rates = {"bfloat16": 989e12, "mixed": 989e12, "float32": 67e12, "float64": 67e12}
    clock, multiprocessors = 1.98e9, 132
    special = multiprocessors * 16 * clock
    return Chip(name, "gpu", topology, number, 80e9, 3.35e12, clock, rates, multiprocessors * 128 * clock, special)


CHIPS = {
    "v5e": _tpu("TPU v5e", "v5e:2x2", 1, "v5e"),
    "v5p": _tpu("TPU v5p", "v5p:2x2x1", 1, "v5p"),
    "h100": _h100("H100", "1x1x1", 1),
    "v5e-4": _tpu("4 × TPU v5e", "v5e:2x2", 4, "v5e"),
    "v5e-64": _tpu("64 × TPU v5e", "v5e:8x8", 64, "v5e"),
    "h100-8": _h100("8 × H100", "1x8x1", 8),
}


def limits(chip: Chip, work: Work, least_bytes: float, products: str) -> dict[str, float]:
    """Seconds that each part of a device needs at least, when the others wait for nothing.

    Args:
        chip: the device.
        work: that the program has on one device.
        least_bytes: that are read and written once.
        products: of which type.
    """
    return {
        "memory": least_bytes / chip.bandwidth,
        "products": work.products / chip.products[products],
        "elementwise": work.elementwise / chip.elementwise,
        "transcendental": work.transcendental / chip.transcendental,
    }
