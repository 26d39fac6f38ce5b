"""The main programs lowered for a GPU and a TPU without having one: what they would refuse is found here.

Nothing is compiled or run, so shapes are tiny. A program must

* lower for CUDA and TPU, in the formulation for them;
* call nothing on the host. By design the progress of a curriculum does, where it is asked for, and so does what reads
  responses that stay in files;
* have float64 exactly where that is meant: the engine for short tests, its standard errors, scores of a table and what
  is computed from a finished fit are float64, to be as exact as other software on the tests of questionnaires. The
  likelihood kernels, the engine for long tests, variational inference, and all that trains networks are float32;
* multiply float32 in full precision in estimates, and in bfloat16 in networks. By default a TPU would round to bfloat16
  wherever it multiplies, a GPU to TensorFloat-32. The attention of nse and esim is left to that default.

The programs are those of `benchmarks.programs`, which `benchmarks.compiled` compiles at their true sizes. The 3PL and
the 4PL share the programs of the 4PL. Scoring has one program for the 2PL to the 4PL.
"""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.programs import Program, array
from benchmarks.programs.adaptive import adaptive_tests
from benchmarks.programs.likelihoods import of_families as families_of_matrices
from benchmarks.programs.likelihoods import of_matrices, of_single_answers
from benchmarks.programs.long_tests import MODELS_OF_ITEMS, of_families, of_right_wrong
from benchmarks.programs.networks import (
    NETWORKS,
    SMALL,
    Sizes,
    a_curriculum,
    an_epoch_of_a_crowd,
    curricula,
    task_of,
    training_by_passes,
)
from benchmarks.programs.short_tests import (
    by_the_answer,
    kernels_of_abilities,
    likelihoods_of_a_fit,
    on_nodes,
    scores,
)
from benchmarks.programs.variational import of_a_matrix
from benchmarks.programs.variational import of_single_answers as steps_of_single_answers
from irtjax.joint.own_answers import Answered, own_difficulties
from irtjax.kernels.answers import Answers, Rows, information
from irtjax.kernels.formulation import formulated_for
from irtjax.kernels.sharding import ITEMS, SUBJECTS, along_subjects, mesh_of
from irtjax.selection.probe import MIN_ITEMS_TO_SAMPLE
from irtjax.selection.rules import Window, beyond_ability, up_to_ability
from irtjax.svi.programs import FEW_RESPONSES, MANY_RESPONSES

TOGETHER = {"gpu": ("cuda", "tpu")}  # in half of the time
APART = {"gpu": ("cuda",), "tpu": ("tpu",)}
SLOTS = 2


def faults(program, formulated=TOGETHER):
    """What is wrong with a `Program` on an accelerator, in words.

    Args:
        program: what is lowered.
        formulated: for which backend, and what is so formulated is lowered for which platforms. Only passes over
            responses and E-steps have a formulation for each.
    """
    found = []
    for backend, platforms in formulated.items():
        try:
            with formulated_for(backend):
                traced = program.traced()
                calls = host_calls(traced)
                if calls:
                    return [f"{program.name} calls the host: {', '.join(calls)}"]
                with jax.enable_x64(program.products == "float64"):
                    text = traced.lower(lowering_platforms=platforms).as_text()
        except Exception as error:  # whatever it is, the other programs are to be looked at too
            return [f"{program.name} cannot be lowered for {', '.join(platforms)}: {type(error).__name__}: {error}"]
        found += [f"{program.name} {fault}" for fault in faults_of(text, program.products)]
    return found


def host_calls(traced):
    return sorted(set(re.findall(r"\b(?:\w+_callback|debug_print)(?=\[)", str(traced.jaxpr))))


def faults_of(text, products):
    found = []
    doubles = re.findall(r"tensor<[^>]*\bf64>|tensor<[^>]*xf64>", text)
    if doubles and products != "float64":
        found.append(f"has float64: {doubles[0]}")
    if not doubles and products == "float64":
        found.append("has no float64: is it still computed as exactly as meant?")
    lines = [line.strip() for line in text.splitlines() if re.search(r"stablehlo\.(dot_general|convolution)", line)]
    low = [line for line in lines if line.count("bf16") >= 2]
    if products == "float32":
        found += [f"multiplies in low precision: {line}" for line in lines if line.count("HIGHEST") < 2][:1]
    if products == "bfloat16":
        found += [f"does not multiply in bfloat16: {line}" for line in lines if line not in low][:1]
    if products in ("bfloat16", "mixed") and not low:
        found.append("has no product in bfloat16")
    return found


def none_in(programs, formulated=TOGETHER):
    found = [fault for program in programs for fault in faults(program, formulated)]
    assert not found, "\n".join(found)


def test_faults_are_found():
    x = array(3, 3)

    def refused(program, products, *words):
        (fault,) = faults(Program("it", jax.jit(program), (x,), products=products))
        assert all(word in fault for word in ("it ", *words)), fault

    def prints(x):
        jax.debug.print("{}", x)
        return x

    def asks(x):
        return jax.pure_callback(np.sin, x, x)

    def tells(x):
        return jax.experimental.io_callback(np.sin, x, x)

    def elsewhere(x):
        return jax.lax.platform_dependent(x, cpu=jnp.sin)

    def double(x):
        with jax.enable_x64(True):
            return (x.astype(jnp.float64) + 1).astype(jnp.float32)

    for program in (prints, asks, tells, lambda x: jax.lax.map(prints, x)):
        refused(program, "float32", "calls the host")
    refused(elsewhere, "float32", "cannot be lowered", "cuda, tpu")
    refused(double, "float32", "has float64")
    refused(jnp.sin, "float64", "has no float64")
    refused(lambda x: x @ x, "float32", "in low precision")
    refused(lambda x: x @ x, "mixed", "no product in bfloat16")
    low = jnp.bfloat16
    refused(lambda x: x @ x + (x.astype(low) @ x.astype(low)).astype(x.dtype), "bfloat16", "not multiply in bfloat16")
    none_in([Program("it", jax.jit(lambda x: jnp.matmul(x, x, precision="highest")), (x,))])


# Likelihood and scoring


@pytest.mark.parametrize("wide", [False, True])
def test_likelihood(wide):
    """With 64 bits switched on, too: the dtype of the sums is that of the abilities."""
    mesh = jax.make_mesh((2, 2), (SUBJECTS, ITEMS), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    programs = [program for over in (None, mesh) for program in of_matrices(6, 4, over)]
    programs += [] if wide else families_of_matrices(6, 4, grades=3)
    if wide:
        programs = [WithWideNumbers(program) for program in programs]
    none_in(programs, APART)


class WithWideNumbers:
    """A program that is traced with 64 bits switched on, though it should not use them."""

    def __init__(self, program):
        self.name, self.products, self.program = program.name, program.products, program

    def traced(self):
        with jax.enable_x64(True):
            return self.program.function.trace(*self.program.placed())


def test_likelihoods_on_a_gpu_are_one_kernel_and_on_a_tpu_one_block():
    """No loop over blocks, which would copy the responses; what is lowered for a CPU has one."""
    _, program = of_matrices(6, 4)

    def lowered(backend, platform):
        with formulated_for(backend):
            return program.traced().lower(lowering_platforms=(platform,)).as_text()

    kernel, loop = "__gpu$xla.gpu.triton", "stablehlo.while"
    texts = [lowered(*pair) for pair in (("gpu", "cuda"), ("tpu", "tpu"), ("cpu", "cpu"))]
    assert [kernel in text for text in texts] == [True, False, False]
    assert [loop in text for text in texts] == [False, False, True]


@pytest.mark.parametrize("devices", [1, 4])
def test_likelihood_of_single_answers(devices):
    """Right and wrong ones, and grades."""
    mesh = None if devices == 1 else along_subjects(mesh_of(2, 2))
    none_in(of_single_answers(8, 5, ((2 * devices, 30, 8), (2 * devices, 20, 8)), mesh))


def test_scoring():
    none_in(kernels_of_abilities(3, 5))


def test_adaptive_tests():
    none_in(adaptive_tests(3, 5, asked=4, together=2))


# Estimation


@pytest.mark.parametrize("mesh", [None, (2, 2)])
def test_an_iteration_of_the_long_engine(mesh):
    mesh = mesh and jax.make_mesh(mesh, (SUBJECTS, ITEMS), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    for name in MODELS_OF_ITEMS if mesh is None else ("4PL",):
        none_in(of_right_wrong(name, 12, 60, mesh))


def test_passes_over_grades_counts_and_shares():
    none_in(of_families(12, 6, top=3))


def test_the_short_engine_is_float64():
    kinds = (on_nodes(6, 5, 7, (2, 4, 3, 2), complete=complete) for complete in (True, False))
    none_in((program for programs in kinds for program in programs), APART)


def test_the_short_engine_by_the_answer_is_float64():
    none_in([by_the_answer(6, cells=8, nodes=7, answers=30)])


def test_what_follows_a_fit_is_float64():
    none_in([*scores(3, 5), likelihoods_of_a_fit(3, 5, 7)])


@pytest.mark.parametrize("priors", [pytest.param("vague", marks=pytest.mark.slow), "hierarchical"])
def test_steps_of_variational_inference(priors):
    # sizes on both sides of where the programs change; of the arrays there are only shapes
    sizes = {(6, 5): 3, (64, FEW_RESPONSES // 64): None, (2048, MANY_RESPONSES // 2048): None}
    for model in ("1pl", "2pl"):
        for (num_subjects, num_items), batch in sizes.items():
            start = batch is None and num_items > 64
            none_in(of_a_matrix(model, priors, num_subjects, num_items, batch, start=start), APART)


@pytest.mark.parametrize("model", [pytest.param("1pl", marks=pytest.mark.slow), "2pl"])
def test_steps_of_variational_inference_of_single_answers(model):
    # of the 1PL all answers, of the 2PL blocks of subjects
    blocks, sides = 1 if model == "1pl" else 3, ((2, 30, 8), (2, 20, 8))
    one = Answers(*(Rows(array(*side, dtype=jnp.int32), array(*side[:2], dtype=jnp.int32)) for side in sides))
    none_in(
        [
            steps_of_single_answers(model, "hierarchical", 64, 5, blocks, sides, answers=300, own=22),
            Program("information of single answers", information, (array(64), array(5), array(5), one)),
        ]
    )


# Networks

SLOW_TO_LOWER = "lenet", "vgg16", "resnet", "cnn", "esim", "bert", "lenet_study", "lstm_study", "cnn_study"


@pytest.mark.parametrize(
    "network", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW_TO_LOWER else []) for name in NETWORKS]
)
def test_an_epoch_of_a_crowd(network, one_device):
    none_in(an_epoch_of_a_crowd(network, SLOTS, one_device))


# Curricula


@pytest.mark.parametrize(
    "name",
    [
        "a schedule",
        "DDaCLAE, all asked",
        pytest.param("DDaCLAE, MAP", marks=pytest.mark.slow),
        "DDaCLAE, a sample asked",
        pytest.param("hard examples", marks=pytest.mark.slow),
        pytest.param("a window, MAP, a sample of sentences", marks=pytest.mark.slow),
    ],
)
def test_curricula(one_device, name):
    large, rules = Sizes(examples=MIN_ITEMS_TO_SAMPLE), (up_to_ability, beyond_ability, Window(0.5))
    none_in([curricula(one_device, SMALL, large, large, rules)[name](seeds=SLOTS)])


@pytest.mark.slow
def test_a_monitored_curriculum(one_device):
    none_in([a_schedule(one_device, monitored=True)])


def test_training_by_passes(one_device):
    none_in([training_by_passes(one_device, seeds=SLOTS)])


def test_learning_from_own_answers(one_device):
    answered = Answered(array(5, dtype=jnp.int32), array(3))
    of_answers = Program("own difficulties", jax.jit(own_difficulties), (answered,))
    none_in([training_by_passes(one_device, seeds=SLOTS, own_answers=True), of_answers])


def a_schedule(mesh, **options):
    pacing = (array(3, dtype=jnp.int32), None, None)
    return a_curriculum("a schedule", task_of("images"), None, pacing, mesh, seeds=SLOTS, **options)
