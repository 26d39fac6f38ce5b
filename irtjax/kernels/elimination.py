"""Small positive definite systems by Gaussian elimination, number by number.

Libraries of linear algebra take one system after the other, and TPUs have none for float64. Of a few unknowns, as many
as an ability has dimensions, elimination is some dozens of operations, of which a compiler makes one loop over all
systems. Positive definite ones need no pivots: errors do not grow (Higham 2002, section 10.1).
"""

from irtjax.types import AnyArray, Float


def solve(matrices: Float[AnyArray, "*systems K K"], vectors: Float[AnyArray, "*systems K"]) -> Float[AnyArray, "*_ K"]:
    """The solutions x of A x = b, of all systems at once.

    Args:
        matrices: A, positive definite (..., K, K).
        vectors: b (..., K).
    """
    size = vectors.shape[-1]
    xp = vectors.__array_namespace__()
    # column by column, which XLA makes one loop of: millions of systems need no memory in between
    left = [[matrices[..., k, n] for n in range(size)] for k in range(size)]
    right = [vectors[..., k] for k in range(size)]
    for k in range(size):
        for below in range(k + 1, size):
            factor = left[below][k] / left[k][k]
            for n in range(k + 1, size):
                left[below][n] = left[below][n] - factor * left[k][n]
            right[below] = right[below] - factor * right[k]
    for k in reversed(range(size)):
        known = sum((left[k][later] * right[later] for later in range(k + 1, size)), 0.0)
        right[k] = (right[k] - known) / left[k][k]
    return xp.stack(right, axis=-1)


def inverse(matrices: Float[AnyArray, "*systems K K"]) -> Float[AnyArray, "*_ K K"]:
    """The inverses of positive definite matrices (..., K, K)."""
    size = matrices.shape[-1]
    xp = matrices.__array_namespace__()
    units = xp.eye(size, dtype=matrices.dtype)
    columns = [solve(matrices, xp.broadcast_to(units[k], matrices.shape[:-1])) for k in range(size)]
    return xp.stack(columns, axis=-1)
