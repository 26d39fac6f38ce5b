"""How abilities are integrated out where items are of families: the choice, as `integration.rules` of right/wrong."""

from irtjax.errors import InputError
from irtjax.estimation.specify_families import FamilyPlan
from irtjax.integration.node_rule import NodeRule
from irtjax.integration.rules import NARROW, WAYS, SharedNodes
from irtjax.kernels.quadrature import nodes_per_dimension, spacing

OF_A_RESPONSE = 0.25  # information about ability, roughly, with slopes of 1
BYTES = 64  # of memory at the peak, for each derivative of a curve at a node: 2.6 GB with 300 × 3,000 grades 0 to 4
MOST_BYTES = 16e9
FEW_BYTES = 2e9  # with which nodes that subjects share are taken although posteriors are narrow
NARROW_IN_DIMENSIONS = 0.25  # as `NARROW`, with D > 1: nodes cost far more there


def choose(way: str, num_nodes: int | None, plan: FamilyPlan, dims: int, *, nodes_only: bool) -> NodeRule | None:
    """The nodes to begin with; None for normal posteriors.

    Args:
        way: one of `integration.rules.WAYS`. "auto" takes nodes that subjects share where posteriors are expected to be
            wider than 0.1, with D > 1 than 0.25, or where these nodes take little memory, and else normal posteriors.
        num_nodes: that subjects share, per dimension; None to choose.
        plan: of the fit.
        dims: D.
        nodes_only: whether there are several populations, or beta-binomial items, whose precision may run away under
            normal posteriors, or nominal ones with D > 1, on which these do not act by slopes of the items.

    Raises:
        InputError: a way that is unknown or that such a fit does not have, or nodes that do not fit into memory.
    """
    if way not in WAYS:
        raise InputError(f"unknown `integration` {way!r}, expected one of {', '.join(WAYS)}")
    if num_nodes is not None and way not in ("auto", "nodes"):
        raise InputError(f"`num_nodes` {num_nodes} with `integration` {way!r}: expected 'nodes'")
    if way == "around":
        raise InputError(
            "`integration` 'around' is of right and wrong answers: grades, counts and shares have 'normal'"
        )
    shared = SharedNodes(nodes_per_dimension(dims) if num_nodes is None else num_nodes, dims)
    if way == "normal":
        if nodes_only:
            raise InputError(
                "`integration` 'normal' of grades, counts and shares has one population, no beta_binomial, and nominal "
                "in one dimension: leave `integration` out"
            )
        return None
    if num_nodes is not None:
        return shared
    needed, numbers = _memory(plan, shared)
    narrow = _expected_width(plan, dims) < (NARROW if dims == 1 else NARROW_IN_DIMENSIONS)
    if way == "auto" and not nodes_only and needed > FEW_BYTES and narrow:
        return None
    if dims == 1 and needed > MOST_BYTES:  # of more dimensions most nodes are left out (`integration.sparse_grid`)
        size = f"{plan.responses.num_subjects:,} subjects × {plan.responses.num_items:,} items"
        raise InputError(
            f"{size}: posteriors need some {numbers:,} nodes that all subjects share, and {needed / 1e9:,.0f} GB of "
            + (
                "memory: use estimator svi, or fit items in parts"
                if nodes_only
                else "memory: use `integration` 'normal'"
            )
        )
    return shared


def _expected_width(plan: FamilyPlan, dims: int) -> float:
    """Posterior standard deviation of ability to expect with slopes of 1 and the mean number of responses.

    The items' information is shared by the dimensions.
    """
    responses = plan.responses
    return float((1 + OF_A_RESPONSE * responses.num_trials / (responses.num_subjects * dims)) ** -0.5)


def _memory(plan: FamilyPlan, rule: SharedNodes) -> tuple[int, int]:
    """Bytes that a fit takes on nodes which resolve the posteriors, and their number in all dimensions."""
    width = _expected_width(plan, rule.dims)
    while spacing(rule.number, rule.bound) > width:
        rule = rule.finer()
    number = rule.number**rule.dims
    return number * plan.responses.num_items * plan.model.per_item * (2 + plan.items.others.shape[1]) * BYTES, number
