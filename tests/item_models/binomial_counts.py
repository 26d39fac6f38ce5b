"""Counts of up to eight trials by the binomial model, a few of them missing, and what their likelihood needs."""

import numpy as np
from scipy.special import expit
from scipy.stats import binom

from irtjax.kernels.quadrature import rectangular

RNG = np.random.default_rng(0)
TRIALS = RNG.integers(1, 9, (150, 8))
SUCCESSES = RNG.binomial(TRIALS, expit(RNG.normal(size=(150, 1)) * 1.2 - np.linspace(-1.5, 1.5, 8))).astype(float)
SUCCESSES[3, 2] = SUCCESSES[7, :4] = np.nan
IDS = [f"s{j}" for j in range(150)], [f"i{i}" for i in range(8)]
NODES = rectangular(121)
RIGHT, WRONG = np.nan_to_num(SUCCESSES), np.nan_to_num(TRIALS - SUCCESSES)
CONSTANT = np.nansum(binom.logpmf(SUCCESSES, TRIALS, 0.5) + TRIALS * np.log(2))  # log C(n, k)
