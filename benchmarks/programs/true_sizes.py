"""The main programs at their true sizes, for one device and for several."""

from collections.abc import Callable
from typing import Any

import jax

from benchmarks.programs import Program
from benchmarks.programs.adaptive import adaptive_tests
from benchmarks.programs.likelihoods import of_families, of_matrices, of_single_answers
from benchmarks.programs.long_tests import of_families as passes_of_families
from benchmarks.programs.long_tests import of_right_wrong
from benchmarks.programs.networks import NETWORKS, Sizes, an_epoch_of_a_crowd, curricula
from benchmarks.programs.short_tests import by_the_answer, on_nodes, scores
from benchmarks.programs.variational import of_a_matrix
from benchmarks.programs.variational import of_single_answers as steps_of_answers
from irtjax.evaluation.replay import BATCH
from irtjax.kernels.loops import at_once
from irtjax.kernels.sharding import ITEMS, SUBJECTS
from irtjax.pretrained.folder import BertConfig
from irtjax.selection.rules import Window, beyond_ability, up_to_ability

Make = Callable[[], Program]

SUBJECTS_OF_LONG, ITEMS_OF_LONG = 1000, 100_000
ITEMS_OF_A_DEVICE, SUBJECTS_OF_MANY = 156_250, 10_000  # 10,000 × 10,000,000 on 64
MEMBERS = dict.fromkeys(NETWORKS, (32,)) | dict.fromkeys(("lenet", "vgg16", "lstm", "bert"), (1, 32, 1024))
SENTENCES = Sizes(examples=60_000, words=32, buckets=(16, 32), vocabulary=16_000, vector=100, width=64, batch=32)
PIECES = Sizes(
    examples=60_000,
    words=32,
    buckets=(16, 32),
    width=64,
    batch=32,
    encoder=BertConfig(layers=6, width=384, heads=12, inner=1536, words=30_522, positions=512, kinds=2, epsilon=1e-12),
)
IMAGES = Sizes(examples=50_000, side=28, large_side=32, channels=3, width=64, batch=64)
DIGITS = Sizes(examples=60_000, side=28, width=16, batch=64, epochs=20)
SIZES = {  # of the tasks that networks read; deep ones have 64 channels in their first layer
    "mlp": DIGITS,
    "lenet": DIGITS,
    "vgg16": IMAGES,
    "resnet": IMAGES,
    "bert": PIECES,
}
ANSWERS = (2**3, 2**17, 2**4), (2**3, 2**17, 2**4)  # rows of 16 million places, 12 million of them answers
ANSWERS_OF_A_STEP = (1, 2**17, 2**4), (1, 2**17, 2**4)


def of_one_device(mesh: jax.sharding.Mesh) -> dict[str, Make]:
    """Each program by its name; they are made when they are called for.

    Args:
        mesh: of the device, with one axis, "network".
    """
    long = SUBJECTS_OF_LONG, ITEMS_OF_LONG
    made: dict[str, Make] = {}

    def add(prefix: str, names: tuple[str, ...], maker: Callable[[], Any]) -> None:
        """Programs that are made together, by their places."""
        for at, name in enumerate(names):
            made[f"{prefix}{name}"] = lambda at=at, maker=maker: list(maker())[at]  # type: ignore[misc]

    add("likelihood: ", ("1PL", "2PL"), lambda: of_matrices(*long))
    add("likelihood: ", ("graded", "partial credit", "counts", "shares"), lambda: of_families(*long, 4))
    add(
        "likelihood of answers: ",
        ("1PL", "2PL", "graded"),
        lambda: of_single_answers(250_000, 20_000, ANSWERS, grades=4),
    )
    for name in ("2PL", "2PL, D=2", "4PL"):
        add("MML, normal posteriors: ", (name,), lambda name=name: of_right_wrong(name, *long, at_the_end=False))  # type: ignore[misc]
    kinds = "graded", "partial credit", "nominal", "counts", "shares"
    passes = tuple(f"{kind}, {over}" for kind in kinds for over in ("items", "subjects"))
    add("MML, normal posteriors: ", passes, lambda: passes_of_families(*long, 4))
    parts = "E-step, shared nodes", "E-step, tiles", "own nodes", "means of scores", "squares of scores"
    tiles = 6, 16, 640, 128  # of 961 nodes in two dimensions those near the posteriors of 10,000 subjects
    add(
        "MML on nodes: ",
        parts,
        lambda: on_nodes(10_000, 100, 61, tiles, complete=True, own_dims=4, taken=5000),
    )
    made["MML on nodes: E-step, many subjects"] = lambda: on_nodes(
        1_000_000, 100, 61, tiles, complete=False, taken=at_once(1, 161)
    )[0]
    made["MML on nodes: E-step by the answer"] = lambda: by_the_answer(17_190, 40_000, 61, 860_000)
    for model in ("1pl", "2pl"):
        add("SVI: ", (model.upper(),), lambda model=model: of_a_matrix(model, "hierarchical", *long, None))  # type: ignore[misc]
    made["SVI of answers: 2PL"] = lambda: steps_of_answers(
        "2pl", "hierarchical", 250_000, 20_000, 8, ANSWERS_OF_A_STEP, 12_000_000, 31_250
    )
    methods = "ml", "map", "wle", "eap"
    add("scores: ", ("ML", "MAP", "WLE", "EAP"), lambda: scores(10_000, 100, methods=methods))
    add(
        "",
        ("adaptive tests of a batch",),
        lambda: adaptive_tests(at_once(BATCH, 5000), 5000, 50, 1, {1: ("variance",)}),
    )
    for network in NETWORKS:
        for members in MEMBERS[network]:
            made[_crowd(network, members)] = _crowd_of(network, members, mesh)
    made["curriculum with its probe: MLP"] = lambda: curricula(
        mesh, DIGITS, DIGITS, SENTENCES, (up_to_ability, beyond_ability, Window(0.5))
    )["DDaCLAE, a sample asked"](seeds=8)
    return made


def of_several_devices(devices: Any, mesh: jax.sharding.Mesh) -> dict[str, Make]:
    """Programs that are spread over devices, items by items, or members of crowds.

    Args:
        devices: (n,).
        mesh: of them, with one axis, "network".
    """
    of_items = jax.sharding.Mesh(
        devices.reshape(1, -1), (SUBJECTS, ITEMS), axis_types=(jax.sharding.AxisType.Auto,) * 2
    )
    size = SUBJECTS_OF_MANY, devices.size * ITEMS_OF_A_DEVICE
    return {
        "likelihood: 1PL": lambda: of_matrices(*size, of_items)[0],
        "likelihood: 2PL": lambda: of_matrices(*size, of_items)[1],
        "MML, normal posteriors: 2PL": lambda: of_right_wrong("2PL", *size, of_items, at_the_end=False)[0],
        "SVI: 1PL": lambda: of_a_matrix("1pl", "hierarchical", *size, None, mesh=of_items)[0],
        _crowd("lstm", 1024): _crowd_of("lstm", 1024, mesh),
    }


def _crowd(network: str, members: int) -> str:
    return f"crowd: {members:,} × {network}"


def _crowd_of(network: str, members: int, mesh: jax.sharding.Mesh) -> Make:
    sizes = SIZES.get(network, SENTENCES)
    return lambda: an_epoch_of_a_crowd(network, members, mesh, sizes, training_alone=True)[0]
