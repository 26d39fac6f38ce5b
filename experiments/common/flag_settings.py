"""What the flags of a task and of training on it come to: the settings of a run."""

import functools
from collections.abc import Collection
from pathlib import Path
from typing import Any

from absl import flags

from experiments.common import app, own_tasks
from experiments.common.settings import FIELDS, IDLE, OF_OPTIMIZER, Settings, values
from experiments.common.task_defaults import NETWORK_DEFAULTS, TASK_DEFAULTS, defaults_of
from experiments.common.task_flags import DEFINERS
from experiments.common.task_names import FORMS
from irtjax import InputError, networks, tasks
from irtjax.arguments import out_of_bounds
from irtjax.tasks.task import sample_split
from irtjax.training.choices import sgd_rate

FLAGS = flags.FLAGS
PRESETS = Path(__file__).parents[1] / "presets"
STUDIES = {task: path for task in TASK_DEFAULTS if (path := PRESETS / f"published_{task}.flags").exists()}


def from_flags() -> Settings:
    """The task's and the network's defaults, replaced by those of the preset and the flags that were given.

    Raises:
        InputError: unknown task, a task that no study had, or a value out of range.
    """
    task = FLAGS.task
    own_task = own_tasks.is_own(task)
    if task not in tasks.TASKS and not own_task:
        raise InputError(f"--task={task}: unknown task, expected one of {', '.join(tasks.TASKS)}, or {FORMS}")
    given: dict[str, Any] = {
        name: FLAGS[name].value for name in FIELDS if name in FLAGS and FLAGS[name].value is not None
    }
    chosen = (_of_study(task, given) if FLAGS.preset == "published" else {}) | given
    if own_task:  # what suits it shows in the data
        found = own_tasks.load(Settings(task=task, **chosen), FLAGS.data_dir)
        if number := chosen.get("train_examples"):
            found = sample_split(found, "train", number, chosen.get("seed", Settings.seed))
        defaults = own_tasks.defaults_by_size(found) | {"task": task}
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


def used(settings: Settings) -> dict[str, Any]:
    """The task, and the settings that the command has flags for, by name."""
    return values(settings, [name for name in FIELDS if name in FLAGS])


def _of_study(task: str, given: Collection[str]) -> dict[str, Any]:
    """The settings of the study of a task, but for an optimizer in place of which another is given."""
    if task not in STUDIES:
        raise InputError(f"--preset=published: no study had {task}, expected one of {', '.join(STUDIES)}")
    read = flags.FlagValues()  # every setting, whether or not the binary has a flag for it
    for name, field in FIELDS.items():
        DEFINERS[field.type](name, None, "", flag_values=read)
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
