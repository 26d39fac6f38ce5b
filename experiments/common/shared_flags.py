"""Flags that several commands share; importing them loads neither JAX nor pandas, which `--help` does not need."""

from typing import Any

from absl import flags

from experiments.common import help
from experiments.common.path_flags import define_path
from irtjax.choices import FACET, LAST
from irtjax.choices import ROLES as EVERY_ROLE

ROLES = tuple(role for role in EVERY_ROLE if role != FACET)  # which has a flag of its own
OF_HARNESS = ("metric", "filter")
SPARSE = {"auto": None, "true": True, "false": False}
GUESSING = "guessing"
help.GROUPS.update(dict.fromkeys(OF_HARNESS, "files of language-model harnesses"))

flags.disclaim_key_flags()  # the flags belong to the binary that defines them


def define_metric() -> Any:
    """The flag --metric."""
    return flags.DEFINE_list("metric", [], "the metric that says what is right; several, the most wanted first")


def define_filter() -> Any:
    """The flag --filter."""
    return flags.DEFINE_list("filter", [], "the filter of answers that counts; several, the most wanted first")


class _ColumnsParser(flags.ArgumentParser):
    """Columns by role, as in subject:model,item:question."""

    syntactic_help = "columns by role"

    def parse(self, argument: str | dict[str, str]) -> dict[str, str]:
        """The name of the column of each role that is given."""
        if isinstance(argument, dict):
            return argument
        pairs = [part.partition(":") for part in argument.split(",")]
        roles = [role for role, _, _ in pairs]
        if not all(name for _, _, name in pairs) or not set(roles) <= set(ROLES) or len(set(roles)) < len(roles):
            raise ValueError(f"expected columns of {', '.join(ROLES)}, as in subject:model,item:question,response:y")
        return {role: name for role, _, name in pairs}

    def flag_type(self) -> str:
        """For the record."""
        return "columns"


class ColumnsSerializer(flags.ArgumentSerializer):
    """The inverse of the parser."""

    def serialize(self, value: dict[str, str]) -> str:
        """The words of the command line."""
        return ",".join(f"{role}:{name}" for role, name in value.items())


def define_columns() -> Any:
    """The flag --columns."""
    return flags.DEFINE(
        _ColumnsParser(),
        "columns",
        None,
        "tables with one row per response: names of the columns, as in subject:model,item:question,response:correct",
        serializer=ColumnsSerializer(),
    )


def define_trials() -> Any:
    """The flag --trials."""
    return flags.DEFINE_string(
        "trials", None, "of counts: the column of the number of trials of each, or one number; default: a column trials"
    )


def define_transpose() -> Any:
    """The flag --transpose."""
    return flags.DEFINE_bool(
        "transpose", False, "take what would be read as subjects for items, and items for subjects"
    )


def define_grades() -> Any:
    """The flag --grades."""
    return flags.DEFINE_list(
        "grades",
        None,
        "all grades or categories, the lowest first, as in low,mid,high; default: the numbers that occur",
    )


def define_repeats() -> Any:
    """The flag --repeats."""
    what = "several answers of a subject to an item: last takes the last; mean does not count right and wrong ones"
    return flags.DEFINE_enum("repeats", None, ["mean", LAST], what)


def define_sparse() -> Any:
    """The flag --sparse."""
    return flags.DEFINE_enum(
        "sparse",
        "auto",
        list(SPARSE),
        "hold single answers (true) or a matrix; auto: single where under 10% of cells have any",
    )


def define_guessing(more: str = "") -> Any:
    """The flag; None where it is not given."""
    return flags.DEFINE_string(
        GUESSING, None, f"fixed guessing: one number for all items, such as 0.25, {more}or a CSV of item_id,guessing"
    )


def define_guard() -> None:
    """The flag --guard_formulas, of commands that write `guarded_results`."""
    flags.DEFINE_bool(
        "guard_formulas",
        False,
        "put an apostrophe before ids that a spreadsheet would run as formulas; they are then not those of the input",
    )


def define_tensorboard() -> Any:
    """The flag, of a command whose stages take long."""
    return define_path(
        "tensorboard", "folder for curves of the progress, which TensorBoard shows (needs pip install tensorboardX)"
    )


def define_processes() -> None:
    """The flags of a command that can be several processes."""
    flags.DEFINE_bool(
        "distributed", False, "be one of several processes, as Slurm, MPI, Kubernetes or a TPU's metadata tell"
    )
    flags.DEFINE_string("coordinator", None, "HOST:PORT where process 0 of several listens, in place of --distributed")
    flags.DEFINE_integer("num_processes", None, "how many there are, with --coordinator", lower_bound=1)
    flags.DEFINE_integer("process_id", None, "which of them this is, from 0 on, with --coordinator", lower_bound=0)
    flags.DEFINE_integer("peer_timeout", 60, "seconds to wait for the other processes to come", lower_bound=1)
    names = ("distributed", "coordinator", "num_processes", "process_id", "peer_timeout")
    help.GROUPS.update(dict.fromkeys(names, "several processes"))
