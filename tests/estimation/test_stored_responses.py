"""Fits of responses that stay in files: those of the same responses in memory, in the memory of a part."""

import numpy as np
import pytest
from simulation import simulate

import irtjax
from irtjax import InputError

RESPONSES, _, _ = simulate(53, 1_003, missing=0.1)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stored") / "r.shards"
    cuts = range(0, 1_003, 170)
    parts = ((RESPONSES.values[:, at : at + 170], RESPONSES.item_ids[at : at + 170]) for at in cuts)
    irtjax.write_shards(parts, RESPONSES.subject_ids, folder)
    return irtjax.open_responses(folder)


def test_fits_from_files_are_those_from_memory(stored, tmp_path):
    fit, whole = irtjax.fit(stored, "2pl"), irtjax.fit(RESPONSES, "2pl")
    assert fit.converged
    assert fit.iterations == whole.iterations
    for name in ("difficulty", "difficulty_se", "ability", "ability_se"):
        np.testing.assert_allclose(getattr(fit, name), getattr(whole, name), rtol=1e-3, atol=1e-4)
    assert fit.log_likelihood == pytest.approx(whole.log_likelihood, rel=1e-6)
    fit.save(tmp_path / "fit")
    restored = irtjax.load_fit(tmp_path / "fit")
    assert restored == fit
    with pytest.raises(InputError, match="were read from files, and not saved with it: read them again"):
        restored.responses.read()


def test_scores_from_files_are_those_from_memory(stored):
    fit = irtjax.fit(RESPONSES, "2pl")
    np.testing.assert_array_equal(irtjax.score(fit, stored), irtjax.score(fit, RESPONSES))


def test_variational_inference_from_files_is_refused_in_one_line(stored):
    with pytest.raises(InputError) as caught:
        irtjax.fit(stored, "1pl", "svi")
    (line,) = str(caught.value).splitlines()
    assert "estimator svi needs the responses in memory" in line
    assert "use estimator mml, which reads files as it goes, or read the responses into memory with" in line
