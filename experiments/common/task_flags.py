"""Flags of a task and of training on it: each replaces the default of the task, the network or the preset."""

import functools
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from absl import flags

from experiments.common import app, help, own_tasks
from experiments.common.path_flags import define_path
from experiments.common.settings import FIELDS, FILES, IDLE, OF_OPTIMIZER, Settings
from experiments.common.task_defaults import NETWORK_DEFAULTS, TASK_DEFAULTS, defaults_by_size, defaults_of
from irtjax import InputError, networks, tasks
from irtjax.arguments import out_of_bounds
from irtjax.tasks.task import sample_split
from irtjax.training.recipe import sgd_rate

_DEFINERS: dict[Any, Callable[..., Any]] = {
    bool: flags.DEFINE_boolean,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    str: flags.DEFINE_string,
}
PRESETS = Path(__file__).parents[1] / "presets"
STUDIES = {task: path for task in TASK_DEFAULTS if (path := PRESETS / f"published_{task}.flags").exists()}
flags.disclaim_key_flags()  # the flags belong to the binary that calls define_flags
_TASK = flags.DEFINE_string(
    "task", "digits", f"one of {', '.join(tasks.TASKS)}; or data of your own: {own_tasks.FORMS}"
)
_PRESET = flags.DEFINE_enum(
    "preset",
    "fast",
    ["fast", "published"],
    "defaults of the other flags: fast, in minutes; or those of the published study of the task, as far as it states "
    "them (hours to days)",
)
DATA_DIR = define_path(
    "data_dir", "folder of prepared TensorFlow Datasets (default: that package's own; digits needs none)"
)


def define_flags(names: Collection[str] = tuple(FIELDS)) -> None:
    """Defines a flag for each of these settings; those that are not given leave the task's default."""
    flags.declare_key_flag("task")
    flags.declare_key_flag("data_dir")
    flags.declare_key_flag("preset")
    defaults = {task: defaults_of(task) for task in TASK_DEFAULTS} | NETWORK_DEFAULTS
    for name, field in FIELDS.items():
        if name in names:
            others = "".join(f"; {owner}: {own[name]}" for owner, own in defaults.items() if name in own)
            default = field.default if field.default or field.type not in (str, bool) else "none"
            text = field.metadata["help"] + (f" (default {default}{others})" if others or default != "none" else "")
            if name in FILES:
                define_path(name, text)
            else:
                _DEFINERS[field.type](name, None, text)
            help.GROUPS[name] = field.metadata["group"]


def from_flags() -> Settings:
    """The task's and the network's defaults, replaced by those of the preset and the flags that were given.

    Raises:
        InputError: unknown task, a task that no study had, or a value out of range.
    """
    task = _TASK.value
    own_task = own_tasks.is_own(task)
    if task not in tasks.TASKS and not own_task:
        raise InputError(f"--task={task}: unknown task, expected one of {', '.join(tasks.TASKS)}, or {own_tasks.FORMS}")
    given: dict[str, Any] = {
        name: flags.FLAGS[name].value for name in FIELDS if name in flags.FLAGS and flags.FLAGS[name].value is not None
    }
    chosen = (_of_study(task, given) if _PRESET.value == "published" else {}) | given
    if own_task:  # what suits it shows in the data
        found = own_tasks.load(Settings(task=task, **chosen), DATA_DIR.value)
        if number := chosen.get("train_examples"):
            found = sample_split(found, "train", number, chosen.get("seed", Settings.seed))
        defaults = defaults_by_size(found) | {"task": task}
    else:
        app.without_effect(own_tasks.FLAGS, f"--task={task}")
        defaults = defaults_of(task) | {"task": task}
    if chosen.get("pretrained"):
        defaults = defaults | {"network": "mlp" if chosen.get("frozen") else "bert"}
    network = chosen.get("network", defaults.get("network", Settings.network)).split(",")[0]
    own = NETWORK_DEFAULTS.get(network, {})
    if chosen.get("optimizer") == "sgd":
        own = own | {"learning_rate": sgd_rate(chosen.get("momentum", 0.0))}
    if chosen.get("label_noise"):  # labels that are wrong already, and not marked, cannot show what is found
        defaults = defaults | {"mislabelled": 0.0}
    settings = Settings(**{**defaults, **own, **chosen})
    _check(settings)
    if settings.label_noise and settings.mislabelled:
        raise InputError(f"--mislabelled={settings.mislabelled}: not beside --label_noise, which flips labels unmarked")
    if settings.glove and settings.pretrained:
        raise InputError("--glove and --pretrained: an encoder has words of its own: leave one out")
    if settings.frozen and not settings.pretrained:
        raise InputError("--frozen: expected the folder of an encoder, --pretrained")
    app.refuse_idle(IDLE, functools.partial(getattr, settings))
    return settings


def _of_study(task: str, given: Collection[str]) -> dict[str, Any]:
    """The settings of the study of a task, but for an optimizer in place of which another is given."""
    if task not in STUDIES:
        raise InputError(f"--preset=published: no study had {task}, expected one of {', '.join(STUDIES)}")
    read = flags.FlagValues()  # every setting, whether or not the binary has a flag for it
    for name, field in FIELDS.items():
        _DEFINERS[field.type](name, None, "", flag_values=read)
    read(["", "--undefok=task", f"--flagfile={STUDIES[task]}"])
    left_out = OF_OPTIMIZER if "optimizer" in given else ()
    found = {name: read[name].value for name in FIELDS if name not in left_out}
    return {name: value for name, value in found.items() if value is not None}


def _check(settings: Settings) -> None:
    """Refuses values that no run could use.

    Raises:
        InputError: names the flag.
    """
    if settings.only and not (settings.members and all(part.isdecimal() for part in settings.only.split(","))):
        raise InputError(f"--only={settings.only}: expected numbers like 3,417, beside --members")
    of_user = [name for name in settings.networks if networks.is_yours(name)]
    for name in of_user:
        networks.require(name)
    app.choose("network", settings.networks, (*of_user, *networks.NETWORKS, "package.module:Class"))
    for name, value, expected in out_of_bounds(settings):
        raise InputError(f"--{name}={value}: {expected}")
