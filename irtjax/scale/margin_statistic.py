"""The quadratic form of M2 and its kin in residual margins, by conjugate gradients or with its matrices written out."""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.sparse.linalg import LinearOperator, cg

from irtjax.errors import InputError
from irtjax.scale.margins import Margins, Moments
from irtjax.types import Float

CONVERGED = 1e-9  # relative residual of conjugate gradients
MOST_WRITTEN_OUT = 2000  # margins, whose matrices are written out where conjugate gradients do not do
LEAST_EIGENVALUE = 1e-9  # of the Jacobian's square, its columns of unit length, for conjugate gradients
LEAST_RATIO = 1e-6  # of singular values of the Jacobian, in units of standard errors, its columns of unit length


def margin_statistic(moments: Sequence[Moments], observed: Sequence[Margins], sizes: np.ndarray, name: str) -> float:
    """J (p - π)' [...] (p - π) over all forms, with margins in units of their standard deviations."""
    root = np.sqrt(sizes / sizes.sum())
    gram = np.asarray(sum(weight**2 * part.gram() for weight, part in zip(root, moments, strict=True)))
    residual = [
        weight * part.of.flat(Margins(*(a - b for a, b in zip(seen, part.expected, strict=True)))) / part.sd
        for weight, part, seen in zip(root, moments, observed, strict=True)
    ]
    if _hard(gram) and sum(map(len, residual)) <= MOST_WRITTEN_OUT:
        return float(sizes.sum() * _written_out(moments, residual, root, name))
    found = _by_products(moments, residual, root, gram)
    if found is None and sum(map(len, residual)) <= MOST_WRITTEN_OUT:
        found = _written_out(moments, residual, root, name)
    if found is None:
        raise InputError(f"{name} has not converged: are there items with extreme slopes?")
    return float(sizes.sum() * found)


def _hard(gram: Float[np.ndarray, "P P"]) -> bool:
    """Whether products of matrices lose too many digits: parameters, in units of their own, are nearly dependent."""
    if not len(gram):
        return False
    size = np.sqrt(np.diag(gram))
    ends = np.linalg.eigvalsh(gram / np.outer(size, size))[[0, -1]]
    return bool(ends[0] < LEAST_EIGENVALUE * ends[1])


def _by_products(
    moments: Sequence[Moments], residual: Sequence[np.ndarray], root: Float[np.ndarray, " F"], gram: np.ndarray
) -> float | None:
    """The statistic of one subject by conjugate gradients; None if they do not converge."""
    factor = cho_factor(gram) if len(gram) else None
    cuts = np.cumsum([part.sd.size for part in moments])[:-1]

    def in_each(apply: Callable[[float, Moments, np.ndarray], np.ndarray], x: np.ndarray) -> list[np.ndarray]:
        return [apply(*each) for each in zip(root, moments, np.split(x, cuts), strict=True)]

    def orthogonal(x: np.ndarray) -> np.ndarray:
        if factor is None:
            return x
        along = cho_solve(factor, sum(in_each(lambda weight, part, y: weight * part.by_parameters(y / part.sd), x)))
        return x - np.concatenate(in_each(lambda weight, part, _: weight * part.by_margins(along) / part.sd, x))

    def product(x: np.ndarray) -> np.ndarray:
        return orthogonal(np.concatenate(in_each(lambda _, part, y: part.covariance(y / part.sd) / part.sd, x)))

    target = orthogonal(np.concatenate(residual))
    operator = LinearOperator((target.size, target.size), matvec=product, dtype=float)
    solution, failed = cg(operator, target, rtol=CONVERGED, maxiter=5000)
    return None if failed else float(target @ orthogonal(solution))


def _written_out(
    moments: Sequence[Moments], residual: Sequence[np.ndarray], root: Float[np.ndarray, " F"], name: str
) -> float:
    """The same with Ξ and Δ written out: what is left of L⁻¹ (p - π) beside L⁻¹ Δ, with L L' = Ξ.

    Raises:
        InputError: margins do not tell the parameters apart.
    """
    left, jacobian = [], []
    for weight, part, own in zip(root, moments, residual, strict=True):
        columns = np.eye(own.size) / part.sd
        covariance = np.stack([part.covariance(column) / part.sd for column in columns])
        factor = np.linalg.cholesky((covariance + covariance.T) / 2)
        by = np.stack([part.by_margins(column) / part.sd for column in np.eye(part.design.shape[1])], axis=1)
        left.append(solve_triangular(factor, own, lower=True))
        jacobian.append(weight * solve_triangular(factor, by, lower=True))
    whole, target = np.concatenate(jacobian), np.concatenate(left)
    basis, values, _ = np.linalg.svd(whole / np.linalg.norm(whole, axis=0), full_matrices=False)
    if values[-1] < LEAST_RATIO * values[0]:
        raise InputError(
            f"{name}: margins do not tell the {whole.shape[1]} parameters apart, so that it would be rounding: take "
            "C2, or a model with fewer parameters"
        )
    return float(target @ target - ((basis.T @ target) ** 2).sum())
