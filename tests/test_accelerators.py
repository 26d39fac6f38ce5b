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

The 3PL and the 4PL share the programs of the 4PL. Scoring has one program for the 2PL to the 4PL.
"""

import dataclasses
import functools
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from irtjax.crowd.members import MemberRow, gold_of, plan_member
from irtjax.estimation.driver import Problem
from irtjax.estimation.normal import at_maximum
from irtjax.estimation.normal.engine import NormalPosteriors
from irtjax.estimation.normal.iteration import iterate
from irtjax.estimation.normal.passes import ScoredPasses
from irtjax.estimation.priors import NormalPrior, Priors
from irtjax.estimation.quadrature import score_moments
from irtjax.estimation.specify import specify, start_items
from irtjax.evaluation import replay
from irtjax.evaluation.adaptive import adaptive_test
from irtjax.evaluation.adaptive_options import Stop
from irtjax.evaluation.rules import IN_SEVERAL_DIMENSIONS, RULES
from irtjax.integration import e_step, posteriors, sparse_e_step
from irtjax.integration import importance_nodes as importance_nodes
from irtjax.integration.nodes import Answers
from irtjax.item_models.binary import BINARY
from irtjax.joint.model import class_head, joint_loss, two_heads
from irtjax.kernels import likelihood, one_pass_answers
from irtjax.kernels.ability_means import ability_eap
from irtjax.kernels.ability_modes import ability_1pl, ability_mode
from irtjax.kernels.ability_weighted import ability_wle
from irtjax.kernels.answers import Answers as SingleAnswers
from irtjax.kernels.answers import Rows, information, log_likelihood_1pl, log_likelihood_2pl
from irtjax.kernels.models import ItemParameters
from irtjax.kernels.one_pass_answers import ScaledAnswers, ScaledRows
from irtjax.kernels.one_pass_grades import graded
from irtjax.kernels.sharding import ITEMS, SUBJECTS, along_subjects, mesh_of
from irtjax.networks.bert import Encoder
from irtjax.networks.formulation import formulated_for
from irtjax.populations.normal import Population
from irtjax.pretrained.folder import BertConfig, Pretrained
from irtjax.responses.matrix import counts
from irtjax.scoring import abilities as scoring
from irtjax.selection import ddaclae
from irtjax.selection.probe import MIN_ITEMS_TO_SAMPLE, rank_items
from irtjax.selection.rules import Window, beyond_ability, up_to_ability
from irtjax.svi.answers import Dealt
from irtjax.svi.guide import Normal, Start
from irtjax.svi.model import PRIORS, Size, hyperparameters
from irtjax.svi.programs import FEW_RESPONSES, MANY_RESPONSES, Settings, programs
from irtjax.tasks.task import ImageFormat, Split, Task, TextFormat
from irtjax.training import loop, mixture, slots
from irtjax.training.data import evaluation_split, to_device
from irtjax.training.recipe import Recipe, make_trainer
from irtjax.training.step import Place

TOGETHER = {"gpu": ("cuda", "tpu")}  # in half of the time
APART = {"gpu": ("cuda",), "tpu": ("tpu",)}
SLOTS = 2


def array(*shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


def faults(name, program, *arguments, products="float32", formulated=TOGETHER, **options):
    """What is wrong with a jitted program on an accelerator, in words.

    Args:
        name: of the program, to begin the words with.
        program: jitted.
        *arguments: arrays, or their shapes and types.
        products: what it should multiply: "float64", "float32" in full precision, "bfloat16", or "mixed" for bfloat16
            with an attention or an adaptive test in float32 beside it.
        formulated: for which backend, and what is so formulated is lowered for which platforms. Only passes over
            responses have a formulation for each.
        **options: of the call.
    """
    found = []
    for backend, platforms in formulated.items():
        try:
            with formulated_for(backend), jax.enable_x64(products == "float64"):
                traced = program.trace(*arguments, **options)
                calls = host_calls(traced)
                if calls:
                    return [f"{name} calls the host: {', '.join(calls)}"]
                text = traced.lower(lowering_platforms=platforms).as_text()
        except Exception as error:  # whatever it is, the other programs are to be looked at too
            return [f"{name} cannot be lowered for {', '.join(platforms)}: {type(error).__name__}: {error}"]
        found += [f"{name} {fault}" for fault in faults_of(text, products)]
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


def none_of(*lists):
    found = [fault for faults in lists for fault in faults]
    assert not found, "\n".join(found)


def test_faults_are_found():
    x = array(3, 3)

    def refused(program, products, *words):
        (fault,) = faults("it", jax.jit(program), x, products=products)
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
    none_of(faults("it", jax.jit(lambda x: jnp.matmul(x, x, precision="highest")), x))


# Likelihood and scoring


@pytest.mark.parametrize("wide", [False, True])
def test_likelihood(wide):
    """With 64 bits switched on, too: the dtype of the sums is that of the abilities."""
    one, two = likelihood.log_likelihood_1pl, likelihood.log_likelihood_2pl
    mesh = jax.make_mesh((2, 2), (SUBJECTS, ITEMS), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    theta, items, responses = array(6), array(4), array(6, 4, dtype=jnp.int8)
    with jax.enable_x64(wide):
        for name, over in (("", None), (" over a mesh", mesh)):
            none_of(
                faults("1PL" + name, gradient_of(one, 2, over), theta, items, responses, formulated=APART),
                faults("2PL" + name, gradient_of(two, 3, over), theta, items, items, responses, formulated=APART),
            )


def test_likelihoods_on_a_gpu_are_one_kernel_and_on_a_tpu_one_block():
    """No loop over blocks, which would copy the responses; what is lowered for a CPU has one."""
    arguments = array(6), array(4), array(4), array(6, 4, dtype=jnp.int8)
    program = gradient_of(likelihood.log_likelihood_2pl, 3, None)

    def lowered(backend, platform):
        with formulated_for(backend):
            return program.trace(*arguments).lower(lowering_platforms=(platform,)).as_text()

    kernel, loop = "__gpu$xla.gpu.triton", "stablehlo.while"
    texts = [lowered(*pair) for pair in (("gpu", "cuda"), ("tpu", "tpu"), ("cpu", "cpu"))]
    assert [kernel in text for text in texts] == [True, False, False]
    assert [loop in text for text in texts] == [False, False, True]


@pytest.mark.parametrize("devices", [1, 4])
def test_likelihood_of_single_answers(devices):
    """Right and wrong ones, and grades."""
    mesh = None if devices == 1 else along_subjects(mesh_of(2, 2))
    whole, theta, items = functools.partial(array, dtype=jnp.int32), array(8), array(5)
    rows = [(whole(2 * devices, number, 8), whole(2 * devices, number)) for number in (30, 20)]
    answers = SingleAnswers(*(Rows(*side) for side in rows))
    cells = [(array(*places.shape, dtype=jnp.int8),) for places, _ in rows]
    scaled = ScaledAnswers(*(ScaledRows(*side, values) for side, values in zip(rows, cells, strict=True)))
    of_grades = functools.partial(one_pass_answers.log_likelihood, graded)
    none_of(
        faults("1PL", gradient_of(log_likelihood_1pl, 2, mesh), theta, items, answers),
        faults("2PL", gradient_of(log_likelihood_2pl, 3, mesh), theta, items, items, answers),
        faults("graded", gradient_of(of_grades, 2, mesh), theta, (items, array(3, 5)), scaled),
    )


def gradient_of(function, number, mesh):
    return jax.jit(jax.value_and_grad(functools.partial(_call, function, mesh), tuple(range(number))))


def _call(function, mesh, *arguments):
    return function(*arguments, mesh)


def item_parameters(dims, dtype=jnp.float32, num_items=5):
    one = array(num_items, dtype=dtype)
    return ItemParameters(array(num_items, dims, dtype=dtype), one, one, one)


def test_scoring():
    rows, population = array(3, 5, dtype=jnp.int8), Population(array(), array())
    found = [
        faults("1PL, ML", jax.jit(jax.vmap(ability_1pl, (0, None))), rows, array(5)),
        faults("1PL, MAP", jax.jit(jax.vmap(ability_1pl, (0, None, None))), rows, array(5), population),
        faults(
            "1PL, of a sample",
            jax.jit(jax.vmap(ability_1pl, (0, None, None, None, 0))),
            *(rows, array(5), None, array(), array(3, 5)),
        ),
    ]
    for dims in (1, 2):
        items = item_parameters(dims)
        found += [
            faults(f"ML, D={dims}", jax.jit(jax.vmap(ability_mode, (0, None))), rows, items),
            faults(f"MAP, D={dims}", jax.jit(jax.vmap(ability_mode, (0, None, None))), rows, items, population),
            faults(f"EAP, D={dims}", jax.jit(jax.vmap(ability_eap, (0, None, None))), rows, items, population),
        ]
    found.append(faults("WLE", jax.jit(jax.vmap(ability_wle, (0, None))), rows, item_parameters(1)))
    none_of(*found)


def test_adaptive_tests():
    values, keys, found = array(3, 5, dtype=jnp.int8), jax.random.split(jax.random.key(0), 3), []
    for dims in (1, 2):
        slope = np.ones((5, dims), np.float32)
        bank = ItemParameters(slope, slope[:, 0], np.full(5, -2, np.float32), np.full(5, 3, np.float32))
        for rule in RULES if dims == 1 else IN_SEVERAL_DIMENSIONS:
            test = adaptive_test(bank, rule=rule, ability="map", stop=Stop(4, change=0.1), groups=[0, 1, 0, 1, 0])
            found.append(faults(f"{rule}, D={dims}", replay._one_batch, replay._recorded, 2, test, values, keys))
    none_of(*found)


# Estimation


VALUES = np.random.default_rng(0).integers(-1, 2, (12, 60)).astype(np.int8)
LONG = {  # model, dimensions, how many of the items are anchors
    "1PL": ("1pl", 1, 0),
    "2PL": ("2pl", 1, 0),
    "2PL with anchors": ("2pl", 1, 5),
    "2PL, D=2": ("2pl", 2, 0),
    "4PL": ("4pl", 1, 0),
}


@pytest.mark.parametrize("mesh", [None, (2, 2)])
def test_an_iteration_of_the_long_engine(mesh):
    mesh = mesh and jax.make_mesh(mesh, (SUBJECTS, ITEMS), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    for name in LONG if mesh is None else ("4PL",):
        state = last_stage(*LONG[name], mesh)

        leaves, structure = jax.tree.flatten(state.specification)

        def one(scaled, damping, leaves, state=state, structure=structure):
            specification = jax.tree.unflatten(structure, leaves)
            passes = ScoredPasses(state.chunks, state.asymptotes, mesh)
            return iterate(scaled, damping, passes, state.weight, specification, True, held=False)

        of_all = state.scaled.items, state.scaled.posterior, next(state.chunks.walk(lambda _, blocks: blocks, None))
        options = {"asymptotes": state.asymptotes, "mesh": mesh}
        none_of(
            faults(f"an iteration, {name}", jax.jit(one), state.scaled, state.damping, leaves),
            faults(f"log-likelihood at the end, {name}", at_maximum._expansion, *of_all, **options),
            faults(f"standard errors, {name}", at_maximum._observed_information, *of_all, **options),
        )


def last_stage(model, dims, num_anchors, mesh):
    """Where the engine ends: all items, with asymptotes if there are any, priors estimated."""
    right, observed = counts(VALUES, axis=0)
    num_items = VALUES.shape[1]
    specification = specify(
        [model] * num_items,
        dims=dims,
        anchored=np.arange(num_items) < num_anchors,
        priors=Priors(slope=NormalPrior(0.0, 1.0)),
        estimate=("slope", "guessing", "upper"),
    )
    engine = NormalPosteriors(mesh=mesh)
    state = engine.init(Problem(VALUES, start_items(specification, right, observed), specification))
    while len(state.phases) > 1:
        state = engine.revise(state)
    assert state.asymptotes == (model == "4pl")
    return state


def test_the_short_engine_is_float64():
    double = functools.partial(array, dtype=jnp.float64)
    whole = functools.partial(array, dtype=jnp.int64)
    (subjects, items, nodes), (tiles, size, blocks, block) = (6, 5, 7), (2, 4, 3, 2)
    at_nodes, weights = double(tiles, size, items), double(blocks, block, size)
    found = []
    for missing, complete in (("", True), (", missing", False)):
        answers = Answers(array(subjects, items, dtype=jnp.int8), BINARY, complete)
        where = whole(blocks, block), whole(blocks)
        scores = score_moments.Scores(at_nodes, double(tiles, size, 8, 1), whole(8, 1), double(tiles, size, items, 2))
        of_blocks = score_moments.Blocks(weights, *where)
        for name, program, arguments in (
            (
                "posteriors on all nodes",
                e_step._add_block,
                (
                    [double(nodes, items), double(nodes, 1 if complete else items)],
                    e_step.Curves(double(nodes, items), double(nodes, items), double(nodes), double(nodes, 2)),
                    answers,
                    whole(),
                    4,
                    False,
                ),
            ),
            (
                "posteriors in tiles",
                e_step._in_tiles,
                (
                    e_step.Curves(at_nodes, at_nodes, double(tiles, size), double(tiles, size, 2)),
                    answers,
                    *where,
                    array(blocks, block, dtype=bool),
                ),
            ),
            (
                "nodes of each subject's own",
                importance_nodes._normal_approximations,
                (item_parameters(4, jnp.float64), answers),
            ),
            ("means of scores", score_moments._means, (of_blocks, answers, scores)),
            (
                "squares of scores",
                score_moments._squares,
                (of_blocks, whole(tiles), whole(tiles), answers, scores),
            ),
        ):
            found.append(faults(name + missing, program, *arguments, products="float64"))
    none_of(*found)


def test_the_short_engine_by_the_answer_is_float64():
    double = functools.partial(array, dtype=jnp.float64)
    at, (subjects, cells, nodes) = array(30, dtype=jnp.int32), (6, 8, 7)
    arguments = double(cells, nodes), at, at, double(30), double(1, nodes), subjects
    none_of(faults("posteriors by the answer", sparse_e_step.gathered, *arguments, products="float64"))


def test_what_follows_a_fit_is_float64():
    double = functools.partial(array, dtype=jnp.float64)
    rows, found = array(3, 5, dtype=jnp.int8), []
    blocks = jax.tree.map(lambda leaf: double(2, *leaf.shape), item_parameters(1))
    for method in ("ml", "map", "eap"):
        arguments = method, 61, None, rows, item_parameters(1, jnp.float64), Population(double(), double())
        found.append(faults(f"scores, {method}", scoring._all_rows, *arguments, None, products="float64"))
    shared = double(61), double(61)
    found.append(faults("scores, shared nodes", scoring._all_rows, *arguments, shared, products="float64"))
    responses = array(3, 2, 5, dtype=jnp.int8)
    found.append(faults("fit", posteriors._log_likelihoods, responses, blocks, double(7, 1), products="float64"))
    none_of(*found)


@pytest.mark.parametrize("priors", [pytest.param("vague", marks=pytest.mark.slow), "hierarchical"])
def test_steps_of_variational_inference(priors):
    # sizes on both sides of where the programs change; of the arrays there are only shapes
    sizes = {(6, 5): 3, (64, FEW_RESPONSES // 64): None, (2048, MANY_RESPONSES // 2048): None}
    found = []
    for model in ("1pl", "2pl"):
        for (num_subjects, num_items), batch in sizes.items():
            name = f"{model}, priors {priors}, {num_subjects} × {num_items}"
            sizes_of = [Size(number, batch, number) for number in (num_subjects, num_items)]
            init, advance = programs(Settings(model, PRIORS[priors], *sizes_of))
            by_item = ("difficulty",) if model == "1pl" else ("intercept", "discrimination")
            shapes = {"ability": (num_subjects,), **dict.fromkeys(by_item, (num_items,))}
            shapes |= dict.fromkeys(hyperparameters(PRIORS[priors], model), ())
            sites = {site: Normal(array(*shape), array(*shape)) for site, shape in shapes.items()}
            start = Start(sites, array(num_items) if model == "2pl" else None)
            responses = array(num_subjects, num_items, dtype=jnp.int8)
            state = jax.eval_shape(init, jax.random.key(0), start, responses)
            arguments = state, 0.1, start, responses, sites, sites
            found.append(faults(f"chunk of steps, {name}", advance, *arguments, formulated=APART))
            if batch is None and num_items > 64:
                arguments = jax.random.key(0), start, responses
                found.append(faults(f"start, {name}", init, *arguments, formulated=APART))
    none_of(*found)


@pytest.mark.parametrize("model", [pytest.param("1pl", marks=pytest.mark.slow), "2pl"])
def test_steps_of_variational_inference_of_single_answers(model):
    # of the 1PL all answers, of the 2PL blocks of subjects
    blocks, priors, whole = (
        1 if model == "1pl" else 3,
        PRIORS["hierarchical"],
        functools.partial(array, dtype=jnp.int32),
    )
    sides = [Rows(whole(blocks, 2, number, 8), whole(blocks, 2, number)) for number in (30, 20)]
    responses = Dealt(SingleAnswers(*sides), whole(blocks, 22) if blocks > 1 else None)
    init, advance = programs(Settings(model, priors, Size(64, None, 64), Size(5, None, 5), None, 300))
    by_item = ("difficulty",) if model == "1pl" else ("intercept", "discrimination")
    shapes = {"ability": (64,), **dict.fromkeys(by_item, (5,)), **dict.fromkeys(hyperparameters(priors, model), ())}
    sites = {site: Normal(array(*shape), array(*shape)) for site, shape in shapes.items()}
    start = Start(sites, array(5) if model == "2pl" else None)
    state = jax.eval_shape(init, jax.random.key(0), start, responses)
    one = SingleAnswers(*(Rows(whole(2, number, 8), whole(2, number)) for number in (30, 20)))
    none_of(
        faults(f"chunk of steps, {model}", advance, state, 0.1, start, responses, sites, sites),
        faults("information of single answers", information, array(64), array(5), array(5), one),
    )


# Networks

NETWORKS = {  # what they read; what they multiply
    "mlp": ("images", "bfloat16"),
    "lenet": ("images", "bfloat16"),
    "vgg16": ("large images", "bfloat16"),
    "resnet": ("large images", "bfloat16"),
    "lstm": ("sentences", "bfloat16"),
    "cnn": ("pairs", "bfloat16"),
    "nse": ("sentences", "mixed"),
    "esim": ("pairs", "mixed"),
    "bert": ("word pieces", "mixed"),
    "lenet_study": ("images", "bfloat16"),
    "lstm_study": ("sentences", "bfloat16"),
    "cnn_study": ("pairs", "bfloat16"),
}


def task_of(kind, num_examples=4):
    if "images" in kind:
        side = 32 if kind == "large images" else 4
        pixels = np.zeros((num_examples, side, side, 1), np.uint8)
        return task_from(pixels, ImageFormat(255.0, flips=kind == "large images"))
    sentences = 2 if kind == "pairs" else 1
    inputs = tuple(np.ones((num_examples, 4), np.uint8) for _ in range(sentences))
    encoder = an_encoder() if kind == "word pieces" else None
    vectors = np.ones((5, 3), np.float32) if encoder is None else encoder.vectors
    return task_from(inputs, TextFormat(("",) * 5, vectors, ((2,) * sentences, (4,) * sentences), encoder))


def an_encoder():
    config = BertConfig(layers=2, width=4, heads=2, inner=6, words=5, positions=8, kinds=2, epsilon=1e-12)
    weights = nnx.to_pure_dict(nnx.state(Encoder(config, rngs=nnx.Rngs(0))))
    return Pretrained(config, np.ones((5, 4), np.float32), jax.tree.map(np.asarray, weights), Path())


def task_from(inputs, format):
    num_examples = len(inputs[0] if isinstance(inputs, tuple) else inputs)
    split = Split(inputs, np.zeros(num_examples, np.int32), np.arange(num_examples).astype(str))
    return Task("toy", split, split, split, ("a", "b"), format)


SLOW_TO_LOWER = "lenet", "vgg16", "resnet", "cnn", "esim", "bert", "lenet_study", "lstm_study", "cnn_study"


@pytest.mark.parametrize(
    "network", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW_TO_LOWER else []) for name in NETWORKS]
)
def test_an_epoch_of_a_crowd(network, one_device):
    kind, products = NETWORKS[network]
    task = task_of(kind)
    recipe = Recipe(network, width=2, batch_size=2, train_embeddings=kind == "sentences")
    trainer, data, gold = make_trainer(recipe, task), to_device(task), gold_of(task)
    types = {"seed": jnp.uint32, "subset_size": jnp.int32, "width": jnp.int32}
    rows = MemberRow(**{name: np.ones(SLOTS, types.get(name, jnp.float32)) for name in MemberRow._fields})
    one = slots.shapes(trainer, plan_member, rows, gold, data.initial)
    plans, learners = begun = jax.tree.map(lambda leaf: array(SLOTS, *leaf.shape, dtype=leaf.dtype), one)
    live, counts, parameters = array(SLOTS, dtype=bool), array(SLOTS, dtype=jnp.int32), learners.best_parameters
    train = slots.train, trainer, one_device, learners, plans, live, Place(counts, counts)
    fill = trainer, plan_member, one_device, begun, live, rows, gold, data.initial
    classify = trainer.network, one_device, parameters, data.embeddings, data.test
    none_of(
        faults(f"{network} begins", slots.fill, *fill),
        faults(f"{network} trains", *train, 3, data, products=products),
        faults(f"{network} trains, slots for unequal times", *train, counts, data, products=products),
        faults(
            f"{network} is validated",
            slots.validate_all,
            *(trainer, one_device, learners, live, data),
            products=products,
        ),
        faults(f"{network} answers", slots.classify_all, *classify, products=products),
    )


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
    large = task_of("images", num_examples=MIN_ITEMS_TO_SAMPLE)
    text = task_of("sentences", num_examples=MIN_ITEMS_TO_SAMPLE)
    counts, error = array(3, dtype=jnp.int32), array()
    population = Population(array(), array())
    cases = {  # task, rule, what it goes by
        "a schedule": (task_of("images"), None, (counts, None, None)),
        "DDaCLAE, all asked": (task_of("images"), up_to_ability, (None, None, None)),
        "DDaCLAE, MAP": (task_of("images"), up_to_ability, (None, population, None)),
        "DDaCLAE, a sample asked": (large, up_to_ability, (None, None, error)),
        "hard examples": (task_of("images"), beyond_ability, (None, None, None)),
        "a window, MAP, a sample of sentences": (text, Window(0.5), (None, population, error)),
    }
    task, rule, pacing = cases[name]
    arguments = curriculum_of(task, rule, pacing, one_device)
    none_of(faults(f"curriculum, {name}", loop._train, *arguments, products="bfloat16"))


@pytest.mark.slow
def test_a_monitored_curriculum(one_device):
    task = task_of("images")
    number = len(task.train.labels)
    bank = ItemParameters(np.ones((number, 1)), np.zeros(number), np.full(number, -np.inf), np.full(number, np.inf))
    monitor = adaptive_test(bank, rule="variance", stop=Stop(2), groups=task.train.labels)
    arguments = curriculum_of(task, None, (array(3, dtype=jnp.int32), None, None), one_device, monitor=monitor)
    none_of(faults("curriculum, monitored", loop._train, *arguments, products="mixed"))


def test_training_by_passes(one_device):
    task = task_of("images")
    network = two_heads("mlp", task, 2)
    trainer = dataclasses.replace(
        make_trainer(Recipe("mlp", width=2, batch_size=2, max_epochs=3), task), network=network, loss=joint_loss(2)
    )
    program = mixture.Mixture((trainer,), class_head(network, 2), lambda logits: logits.argmax(-1))
    number = len(task.train.labels)
    over = mixture.Stream(array(number, dtype=jnp.int32), array(number, 4), array(3, dtype=jnp.int32))
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), SLOTS))
    problem = mixture._Problem(to_device(task), {"test": evaluation_split(task.test)}, (over,), array())
    none_of(faults("passes", loop._train, program, one_device, keys, problem, products="bfloat16"))


def curriculum_of(task, rule, pacing, mesh, on_epoch=None, monitor=None):
    network = "mlp" if isinstance(task.format, ImageFormat) else "cnn"
    trainer = make_trainer(Recipe(network, width=2, batch_size=2, max_epochs=3), task)
    program = ddaclae._Curriculum(trainer, rule, on_epoch)
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), SLOTS))
    items = jax.eval_shape(rank_items, array(len(task.train.labels)))
    return program, mesh, keys, ddaclae._Problem(to_device(task), items, array(), *pacing, monitor)


def test_the_progress_of_a_curriculum_is_a_call_to_the_host(one_device):
    pacing = (array(3, dtype=jnp.int32), None, None)
    arguments = curriculum_of(task_of("images"), None, pacing, one_device, on_epoch=print)
    assert host_calls(loop._train.trace(*arguments)) == ["debug_callback"]
