"""Flags of a task and of training on it: each replaces the default of the task, the network or the preset.

Importing them loads neither JAX nor pandas, which `--help` does not need; `flag_settings` has what they come to.
"""

from collections.abc import Callable, Collection
from typing import Any

from absl import flags

from experiments.common import help
from experiments.common.path_flags import define_path
from experiments.common.settings import FIELDS, FILES
from experiments.common.task_defaults import NETWORK_DEFAULTS, TASK_DEFAULTS, defaults_of
from experiments.common.task_names import FORMS
from irtjax.tasks.choices import TASKS

DEFINERS: dict[Any, Callable[..., Any]] = {
    bool: flags.DEFINE_boolean,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    str: flags.DEFINE_string,
}
flags.disclaim_key_flags()  # the flags belong to the binary that calls define_flags
flags.DEFINE_string("task", "digits", f"one of {', '.join(TASKS)}; or data of your own: {FORMS}")
flags.DEFINE_enum(
    "preset",
    "fast",
    ["fast", "published"],
    "defaults of the other flags: fast, in minutes; or those of the published study of the task, as far as it states "
    "them (hours to days)",
)
define_path("data_dir", "folder of prepared TensorFlow Datasets (default: that package's own; digits needs none)")


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
                DEFINERS[field.type](name, None, text)
            help.GROUPS[name] = field.metadata["group"]
