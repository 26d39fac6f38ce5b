"""Convolutions and pooling of images, formulated for the backend they run on. Images are (B, H, W, channels)."""

import functools

import jax
import jax.numpy as jnp

from irtjax.kernels.formulation import for_accelerator
from irtjax.networks.layers import compute_dtype, gradient_of_matrix, matmul

FEW_CHANNELS = 8


def convolve(x: jax.Array, kernel: jax.Array, stride: int = 1) -> jax.Array:
    r"""Correlation of images with a kernel of odd size, over images padded with zeros, at every `stride`-th pixel.

    .. math::
        y_{b,i,j,o} = \sum_{u,v,c} x_{b,si+u-r,sj+v-r,c} k_{u,v,c,o}, \qquad r = \lfloor size / 2 \rfloor, s = stride

    The formulation is chosen here for all networks: XLA's convolution on a GPU or TPU, matrix products on a CPU. There,
    XLA's convolution is slow where it matters: within a loop of training steps (12 times as slow as outside of it), and
    vmapped over kernels, which makes it a grouped convolution.

    Args:
        x: (B, H, W, C).
        kernel: (size, size, C, O).
        stride: 1 for images of the same size.

    Returns:
        (B, ⌈H / stride⌉, ⌈W / stride⌉, O).
    """
    if for_accelerator():
        return by_convolution(x, kernel, stride)
    return by_products(x, kernel) if stride == 1 else by_patches(x, kernel, stride)


def by_convolution(x: jax.Array, kernel: jax.Array, stride: int = 1) -> jax.Array:
    """`convolve` by XLA's convolution, operands and result in the dtype of products: its sums are float32 inside."""
    low, around = compute_dtype(x.dtype), (kernel.shape[0] // 2,) * 2
    y = jax.lax.conv_general_dilated(
        x.astype(low),
        kernel.astype(low),
        (stride, stride),
        (around, around),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    return y.astype(x.dtype)


def by_patches(x: jax.Array, kernel: jax.Array, stride: int) -> jax.Array:
    """`convolve` by one product of patches, (size² · C) values around every `stride`-th pixel."""
    size, _, num_inputs, num_outputs = kernel.shape
    radius = size // 2
    padded = jnp.pad(x, [(0, 0), (radius, radius), (radius, radius), (0, 0)])
    rows, columns = (x.shape[axis] - 1 for axis in (1, 2))
    patches = [
        padded[:, u : u + rows + 1 : stride, v : v + columns + 1 : stride] for u in range(size) for v in range(size)
    ]
    return matmul(jnp.concatenate(patches, axis=-1), kernel.reshape(size * size * num_inputs, num_outputs))


@jax.custom_vjp
def by_products(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """`convolve` by one matrix product, shifting images along the width before it and along the height after it.

    Every pixel and its neighbours in the row, (size · C) values, are multiplied by all rows of the kernel at once; the
    results, (size · O) values, are then summed over successive rows. This takes as many multiplications as the usual
    patches of size² · C values, with a fraction of the copies. The backward pass is the same with the roles exchanged,
    and keeps nothing but `x`.
    """
    size, _, _, num_outputs = kernel.shape
    products = matmul(_along_width(x, size), _as_matrix(kernel))
    parts = (products[..., u * num_outputs : (u + 1) * num_outputs] for u in range(size))
    return functools.reduce(jnp.add, (shift(part, u - size // 2, axis=1) for u, part in enumerate(parts)))


def _forward(x: jax.Array, kernel: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    return by_products(x, kernel), (x, kernel)


def _backward(residuals: tuple[jax.Array, jax.Array], gradient: jax.Array) -> tuple[jax.Array, jax.Array]:
    x, kernel = residuals
    size, _, num_inputs, num_outputs = kernel.shape
    radius = size // 2
    d_products = jnp.concatenate([shift(gradient, radius - u, axis=1) for u in range(size)], axis=-1)
    d_matrix = gradient_of_matrix(_along_width(x, size), d_products)
    d_kernel = d_matrix.reshape(size, num_inputs, size, num_outputs).transpose(2, 0, 1, 3)
    d_rows = matmul(d_products, _as_matrix(kernel).T)
    parts = (d_rows[..., v * num_inputs : (v + 1) * num_inputs] for v in range(size))
    d_x = functools.reduce(jnp.add, (shift(part, radius - v, axis=2) for v, part in enumerate(parts)))
    return d_x, d_kernel


by_products.defvjp(_forward, _backward)


def _along_width(x: jax.Array, size: int) -> jax.Array:
    """Every pixel with its neighbours in the row: (B, H, W, size · C)."""
    return jnp.concatenate([shift(x, v - size // 2, axis=2) for v in range(size)], axis=-1)


def _as_matrix(kernel: jax.Array) -> jax.Array:
    """(size, size, C, O), by row and column, as (size · C, size · O): the columns of a kernel, by its rows."""
    size, _, num_inputs, num_outputs = kernel.shape
    return kernel.transpose(1, 2, 0, 3).reshape(size * num_inputs, size * num_outputs)


def shift(x: jax.Array, by: int, axis: int) -> jax.Array:
    """`x` moved along an axis: place i gets what was at i + `by`, or zeros where nothing was."""
    if abs(by) >= x.shape[axis]:
        return jnp.zeros_like(x)
    padding = [(-by, by, 0) if at == axis else (0, 0, 0) for at in range(x.ndim)]  # negative: cut off
    return jax.lax.pad(x, jnp.zeros((), x.dtype), padding)


def convolve_and_pool(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """`max_pool` of `convolve`: (B, H, W, C) -> (B, ⌈H / 2⌉, ⌈W / 2⌉, O).

    Images of few channels are convolved square by square on a CPU, whose copies of 1 or 3 values are slow.
    """
    few, even = x.shape[-1] < FEW_CHANNELS, x.shape[1] % 2 == x.shape[2] % 2 == 0
    if few and even and not for_accelerator():
        return by_squares(x, kernel)
    return max_pool(convolve(x, kernel))


def by_squares(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """`max_pool` of `convolve` for even sizes, with squares of 2 × 2 pixels as the places of the product.

    A square's four outputs come from the 3 × 3 squares around it (for kernels of 3 or 5), by a matrix that holds four
    shifted copies of the kernel. Compared with patches of pixels, this takes 1.4 times the multiplications and a third
    of the copies, and pooling takes the largest of four neighbouring columns.
    """
    batch, height, width, channels = x.shape
    radius = _radius_in_squares(kernel.shape[0])
    squares = x.reshape(batch, height // 2, 2, width // 2, 2, channels).transpose(0, 1, 3, 2, 4, 5)
    squares = squares.reshape(batch, height // 2, width // 2, 4 * channels)
    rows = _along_width(squares, 2 * radius + 1)
    patches = jnp.concatenate([shift(rows, u, axis=1) for u in range(-radius, radius + 1)], axis=-1)
    y = matmul(patches, _as_matrix_of_squares(kernel))
    return _largest(y.reshape(*y.shape[:-1], 4, kernel.shape[-1]))


def _radius_in_squares(size: int) -> int:
    return (size // 2 + 1) // 2


def _as_matrix_of_squares(kernel: jax.Array) -> jax.Array:
    """(size, size, C, O) as (squares around · 4C, 4 · O), rows and columns in the order of `by_squares`."""
    size, _, num_inputs, num_outputs = kernel.shape
    span = 2 * _radius_in_squares(size) + 1  # squares
    room = 2 * span - size  # rows that the kernel leaves free; at least 1, for it to move
    first = span - 1 - size // 2  # of the kernel, for the upper left pixel of the square in the middle

    def placed(down: int, right: int) -> jax.Array:
        free = [(first + offset, room - first - offset) for offset in (down, right)]
        wide = jnp.pad(kernel, [*free, (0, 0), (0, 0)])
        wide = wide.reshape(span, 2, span, 2, num_inputs, num_outputs).transpose(0, 2, 1, 3, 4, 5)
        return wide.reshape(span * span * 4 * num_inputs, num_outputs)

    return jnp.concatenate([placed(down, right) for down in (0, 1) for right in (0, 1)], axis=1)


def max_pool(x: jax.Array) -> jax.Array:
    """Largest values of squares of 2 × 2 pixels: (B, H, W, C) -> (B, ⌈H / 2⌉, ⌈W / 2⌉, C); odd edges are repeated."""
    odd = [(0, 0), (0, x.shape[1] % 2), (0, x.shape[2] % 2), (0, 0)]
    return _max_of_squares(jnp.pad(x, odd, mode="edge") if any(map(any, odd)) else x)


@jax.custom_vjp
def _largest(x: jax.Array) -> jax.Array:
    """(..., 4, C) -> (..., C)."""
    return x.max(-2)


def _largest_forward(x: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    largest = _largest(x)
    return largest, (x, largest)


def _largest_backward(residuals: tuple[jax.Array, jax.Array], gradient: jax.Array) -> tuple[jax.Array]:
    """The gradient in equal parts to all that are the largest, as JAX has it, in a third of its time on a CPU."""
    x, largest = residuals
    parts = [x[..., part, :] for part in range(4)]
    largest = _among(parts, largest)
    count = sum((part == largest).astype(x.dtype) for part in parts)
    return (jnp.where(x == largest[..., None, :], (gradient / count)[..., None, :], 0),)


_largest.defvjp(_largest_forward, _largest_backward)


@jax.custom_vjp
def _max_of_squares(x: jax.Array) -> jax.Array:
    batch, height, width, channels = x.shape
    return x.reshape(batch, height // 2, 2, width // 2, 2, channels).max((2, 4))


def _max_forward(x: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    largest = _max_of_squares(x)
    return largest, (x, largest)


def _max_backward(residuals: tuple[jax.Array, jax.Array], gradient: jax.Array) -> tuple[jax.Array]:
    """The gradient in equal parts to all largest pixels, as JAX has it, in a third of its time on a CPU."""
    x, largest = residuals
    batch, height, width, channels = x.shape
    pairs = x.reshape(batch, height // 2, 2, width // 2, 2 * channels)
    corners = [pairs[:, :, row, :, at : at + channels] for row in (0, 1) for at in (0, channels)]
    largest = _among(corners, largest)
    count = sum((corner == largest).astype(x.dtype) for corner in corners)
    return (jnp.where(x == _repeat(largest), _repeat(gradient / count), 0),)


def _among(parts: list[jax.Array], largest: jax.Array) -> jax.Array:
    """The largest of parts, as they are in a backward pass, which is to know them by it.

    A compiler may compute parts anew where they are read, in another rounding than in the forward pass; no part is then
    equal to the largest of that pass, and no gradient comes through. It is found again, but on CPUs: there that takes
    twice the time of the whole, and XLA does not do this unless its optimizations are disabled.
    """
    return functools.reduce(jnp.maximum, parts) if for_accelerator() else largest


def _repeat(x: jax.Array) -> jax.Array:
    """Each pixel four times, as a square."""
    batch, height, width, channels = x.shape
    square = (batch, height, 2, width, 2, channels)
    return jnp.broadcast_to(x[:, :, None, :, None], square).reshape(batch, 2 * height, 2 * width, channels)


_max_of_squares.defvjp(_max_forward, _max_backward)
