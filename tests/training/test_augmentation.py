"""Augmentation: every image is one of the flips and shifts of itself."""

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.training.augmentation import MARGIN, flip_and_shift

IMAGES = jnp.asarray(np.random.default_rng(0).integers(1, 255, (64, 6, 6, 3)), jnp.uint8)


def test_images_are_flipped_and_shifted_each_for_itself():
    changed = np.asarray(flip_and_shift(jax.random.key(0), IMAGES))
    assert changed.dtype == np.uint8
    seen = set()
    for before, after in zip(np.asarray(IMAGES), changed, strict=True):
        found = []
        for flip in (False, True):
            padded = np.pad(before[:, ::-1] if flip else before, ((MARGIN, MARGIN), (MARGIN, MARGIN), (0, 0)))
            found += [
                (flip, down, right)
                for down in range(2 * MARGIN + 1)
                for right in range(2 * MARGIN + 1)
                if (padded[down : down + 6, right : right + 6] == after).all()
            ]
        assert len(found) == 1
        seen.update(found)
    assert len({flip for flip, _, _ in seen}) == 2
    assert {down for _, down, _ in seen} == {right for _, _, right in seen} == set(range(2 * MARGIN + 1))


def test_the_key_decides():
    one, same, other = (flip_and_shift(jax.random.key(seed), IMAGES) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
