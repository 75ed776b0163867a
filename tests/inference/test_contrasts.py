import numpy as np
import pytest
from scipy.stats import norm

from frame.errors import InputError
from frame.inference.contrasts import FEWEST_RESAMPLES, paired_contrast


def test_p_and_interval_against_counting_by_hand():
    rng = np.random.default_rng(11)
    replicates = rng.normal(0.02, 0.01, 500)
    result = paired_contrast(0.015, replicates)
    centre = sum(replicates) / 500
    reached = sum(1 for b in replicates if abs(b - centre) >= 0.015)
    assert result.p == pytest.approx((1 + reached) / 501, abs=1e-15)
    assert 0 < reached < 500
    ordered = sorted(replicates)
    # Linear interpolation between order statistics: position 0.025 * 499 = 12.475.
    assert result.lo == pytest.approx(ordered[12] + 0.475 * (ordered[13] - ordered[12]), abs=1e-15)
    assert result.hi == pytest.approx(ordered[486] + 0.525 * (ordered[487] - ordered[486]), abs=1e-15)
    assert (result.change, result.resamples, result.status, result.reason) == (0.015, 500, "ok", "")


def test_p_is_the_normal_p_for_normal_resamples():
    # Quantiles of a normal law instead of draws: p must be 2 Phi(-1.5) = 0.1336 up to the grid.
    grid = norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    assert paired_contrast(1.5, 1.5 + grid).p == pytest.approx(2 * norm.cdf(-1.5), abs=2e-4)


def test_the_sign_of_the_change_does_not_matter():
    replicates = np.random.default_rng(3).gamma(2.0, 0.01, 400)
    up, down = paired_contrast(0.02, replicates), paired_contrast(-0.02, -replicates)
    assert up.p == down.p
    assert (up.lo, up.hi) == pytest.approx((-down.hi, -down.lo))


def test_smallest_p_and_no_change():
    assert paired_contrast(1.0, np.linspace(0.9, 1.1, 999)).p == pytest.approx(1 / 1000)
    assert paired_contrast(0.0, np.linspace(-0.1, 0.1, 999)).p == 1.0
    assert paired_contrast(0.0, np.zeros(100)).p == 1.0


def test_a_resample_on_the_edge_counts():
    # 0.3 - 0.2 is 0.09999999999999998: rounding must not keep it from reaching 0.1.
    replicates = np.array([0.3, 0.1] * 20)
    assert paired_contrast(0.1, replicates).p == 1.0


def test_undefined_resamples_are_left_out_and_counted():
    replicates = np.concatenate([np.linspace(0.0, 0.1, 50), [np.nan] * 7])
    result = paired_contrast(0.05, replicates)
    assert (result.resamples, result.n_undefined) == (50, 7)
    assert result.reason == "undefined in 7 of 57 resamples, left out"
    assert result.p == paired_contrast(0.05, replicates[:50]).p


@pytest.mark.parametrize(
    ("point", "replicates", "reason"),
    [
        (np.nan, np.zeros(100), "the change itself is undefined"),
        (
            0.1,
            np.full(100, np.nan),
            f"the change is defined in 0 of 100 resamples, {FEWEST_RESAMPLES} needed",
        ),
        (0.1, [], f"the change is defined in 0 of 0 resamples, {FEWEST_RESAMPLES} needed"),
    ],
)
def test_not_estimable_has_a_reason_and_no_numbers(point, replicates, reason):
    result = paired_contrast(point, replicates)
    assert (result.status, result.reason) == ("not estimable", reason)
    assert np.isnan([result.lo, result.hi, result.p]).all()


def test_refusals():
    with pytest.raises(InputError, match="2 dimensions"):
        paired_contrast(0.1, np.zeros((3, 3)))
    with pytest.raises(InputError, match="infinite"):
        paired_contrast(0.1, [np.inf] * 30)
    with pytest.raises(InputError, match="infinite"):
        paired_contrast(np.inf, np.zeros(30))


def test_size_under_no_change():
    # Simulated: the mean of 200 patients' paired changes with true mean 0; nominal level .05.
    rng = np.random.default_rng(2026)
    rejected = 0
    for _ in range(400):
        changes = rng.exponential(1.0, 200) - 1.0
        drawn = rng.multinomial(200, np.full(200, 1 / 200), size=300) @ changes / 200
        rejected += paired_contrast(changes.mean(), drawn).p < 0.05
    assert 8 <= rejected <= 36  # 99 % of a binomial(400, .05) lies in 9..32
