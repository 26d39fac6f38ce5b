"""Four host devices for every test, no silent rank promotion, and the paths of data that a bare clone lacks."""

import ctypes
import gc
import importlib.metadata
import os
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
# before jax is imported anywhere: the tests of sharding need several devices
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4"

# compiled programs are kept between runs of the tests, and shared with the processes that they start
CACHE = Path.home() / ".cache" / "irtjax-tests" / f"jax-{importlib.metadata.version('jaxlib')}"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")
# likewise the arrays of prepared data sets, beside them rather than in the user's own cache
os.environ["IRTJAX_CACHE"] = str(CACHE / "tasks")
os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(CACHE / "hypothesis"))  # rather than in the repository

import hypothesis
import jax
import numpy as np
import pytest
import type_checks

type_checks.install()

from irtjax import ResponseMatrix
from irtjax.tasks import Split
from irtjax.tasks.task import Task, TextFormat
from irtjax.training.data import Data, evaluation_split

# the same examples in every run; `pytest --hypothesis-profile=thorough` looks for others, by chance
hypothesis.settings.register_profile("repeated", derandomize=True, deadline=None, database=None, max_examples=100)
hypothesis.settings.register_profile("thorough", deadline=None, database=None, max_examples=20_000)
hypothesis.settings.load_profile("repeated")

jax.config.update("jax_numpy_rank_promotion", "raise")
SHARED = REPOSITORY.parent / "shared"
MOST_MEMORY = 3 * 2**29  # bytes of a worker, from which on its compiled programs go


@pytest.fixture(scope="module", autouse=True)
def programs_of_one_module():
    """Compiled programs go with the modules that they were compiled for: those of all modules are gigabytes."""
    yield
    if memory_in_use() > MOST_MEMORY:
        jax.clear_caches()
        gc.collect()
        give_memory_back()


def memory_in_use() -> int:
    """Bytes that this process holds; beyond any bound where that cannot be read."""
    pages = Path("/proc/self/statm")
    return int(pages.read_text().split()[1]) * os.sysconf("SC_PAGESIZE") if pages.exists() else sys.maxsize


def give_memory_back() -> None:
    """Has the C library return what it has freed, where it would keep it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data beside the repository."""
    if not SHARED.is_dir():
        pytest.skip("needs the data folder ../shared, which is not here")
    return SHARED


@pytest.fixture(scope="session")
def oracle(shared):
    """Estimates of R's mirt and psych, with the responses that they are of."""
    from references import Oracle

    return Oracle(shared)


@pytest.fixture
def one_device() -> jax.sharding.Mesh:
    return mesh_of(1)


def mesh_of(num_devices: int) -> jax.sharding.Mesh:
    return jax.make_mesh(
        (num_devices,),
        ("network",),
        axis_types=(jax.sharding.AxisType.Auto,),
        devices=jax.devices()[:num_devices],
    )


def matrix(values: np.ndarray) -> ResponseMatrix:
    num_subjects, num_items = values.shape
    return ResponseMatrix(
        values, np.array([f"s{j}" for j in range(num_subjects)]), np.array([f"i{i}" for i in range(num_items)])
    )


def data_of(inputs: np.ndarray, labels: np.ndarray) -> Data:
    """The same examples as training, validation and test split."""
    split = Split(np.asarray(inputs), np.asarray(labels, np.int32), np.arange(len(labels)).astype(str))
    evaluated = evaluation_split(split)
    return jax.device_put(Data(split.inputs, None, None, evaluated, evaluated, evaluated))


BUCKETS = ((2,), (5,), (9,))


def sentences(lengths):
    """A text task whose example i is `lengths[i]` times word 2 + i % 7."""
    words = np.zeros((len(lengths), 9), np.uint16)
    for at, length in enumerate(lengths):
        words[at, :length] = 2 + at % 7
    split = Split((words,), np.zeros(len(lengths), np.int32), np.arange(len(lengths)).astype(str))
    return Task("toy", split, split, split, ("a", "b"), TextFormat(("",) * 9, np.eye(9, dtype=np.float32), BUCKETS))
