"""Recipes: kernels as the program prints them, and training formulas against other ways to compute them."""

import json
import pickle

import numpy as np
import pytest

import psld
from conftest import RECIPES, ROOT

TIMES = [1e-5, 1e-3, 0.05, 0.3, 1.0]


@pytest.mark.parametrize("mode", ["hsm", "dsm"])
@pytest.mark.parametrize("text", RECIPES)
def test_kernels_are_those_of_the_program(program, text, mode):
    told = json.loads(program("recipe", *text.split(), "--json", "--mode", mode, "--at", ",".join(map(repr, TIMES))))
    recipe = psld.Recipe(text)
    assert recipe.name == told["name"] and recipe.k == told["k"]
    assert np.array_equal(recipe.D, told["D"]) and np.array_equal(recipe.Q, told["Q"])
    assert np.array_equal(recipe.mass, told["mass"]) and np.array_equal(recipe.init, told["init"])
    kernel = recipe.kernel(TIMES, mode)
    first, second = recipe.error_factors(TIMES)
    sigma, distance = recipe.sigma(TIMES), recipe.distance(TIMES)
    for i, row in enumerate(told["kernel"]):
        for name in ("mean", "cov", "chol"):
            assert np.array_equal(getattr(kernel, name)[i], row[name])
        assert sigma[i] == row["sigma"] and distance[i] == row["distance"]
        assert np.array_equal(first[i], row["lambda_first_order"]) and np.array_equal(second[i], row["lambda"])
    analysis = recipe.analyse()
    assert np.array_equal(np.stack([analysis.eigenvalues.real, analysis.eigenvalues.imag], 1), told["eigenvalues"])
    assert (analysis.damping, analysis.distance, analysis.long_enough, analysis.sigma_max) == tuple(
        told[name] for name in ("damping", "distance", "long_enough", "sigma_max")
    )


def test_shapes_follow_the_times(recipe):
    k = recipe.k
    assert recipe.kernel(0.5).mean.shape == (k, k)
    assert recipe.kernel(np.full((2, 3), 0.5)).cov.shape == (2, 3, k, k)
    assert recipe.kernel([]).chol.shape == (0, k, k)
    assert recipe.sigma(0.5).shape == ()
    assert np.allclose(recipe.time(recipe.sigma([0.1, 0.7])), [0.1, 0.7], rtol=1e-9)


def test_matrices_give_the_recipe(recipe):
    spec = dict(D=recipe.D, Q=recipe.Q, beta=list(recipe.beta), stabiliser=recipe.stabiliser)
    if recipe.k > 1:
        spec.update(mass=recipe.mass, init=recipe.init)
    own = psld.Recipe(**spec)
    assert own == recipe and hash(own) == hash(recipe)
    assert np.array_equal(own.kernel(TIMES).cov, recipe.kernel(TIMES).cov)


def test_pickles(recipe):
    again = pickle.loads(pickle.dumps(recipe))
    assert again == recipe and again.predicted == recipe.predicted and again.mode == recipe.mode
    assert np.array_equal(again.factor(TIMES).factor, recipe.factor(TIMES).factor)


def test_factor_is_one_of_the_stabilised_covariance(recipe):
    factor, inverse = recipe.factor(TIMES)
    cov = recipe.kernel(TIMES, recipe.mode).cov + recipe.stabiliser * np.eye(recipe.k)
    scale = np.sqrt(np.einsum("tii,tjj->tij", cov, cov))
    assert np.all(np.abs(factor @ np.swapaxes(factor, 1, 2) - cov) <= 1e-13 * scale)
    assert np.allclose(factor @ inverse, np.eye(recipe.k), atol=1e-9)


def draw(recipe, shape=(2,), n=20000, t=0.4, seed=0):
    random = np.random.default_rng(seed)
    x0 = np.full((n, *shape), 0.7)
    eps = random.normal(size=(n, recipe.k * shape[0], *shape[1:]))
    return x0, np.full(n, t), eps


def test_perturbed_states_have_the_moments_of_the_kernel(recipe):
    x0, t, eps = draw(recipe)
    mode = recipe.mode
    start = (
        recipe.start(x0, np.random.default_rng(1).normal(size=(len(x0), (recipe.k - 1) * 2))) if mode == "dsm" else x0
    )
    z = recipe.perturb(start, t, eps).reshape(len(x0), recipe.k, 2)
    kernel = recipe.kernel(0.4)  # the auxiliary variables integrated out, whichever way they were drawn
    deviation = np.sqrt(np.diag(kernel.cov) / (2 * len(x0)))
    assert np.all(np.abs(z.mean((0, 2)) - 0.7 * kernel.mean[:, 0]) < 5 * deviation)
    whitened = np.linalg.solve(
        kernel.chol, (z - (0.7 * kernel.mean[:, 0])[:, None]).transpose(1, 0, 2).reshape(recipe.k, -1)
    )
    assert np.allclose(np.cov(whitened), np.eye(recipe.k), atol=0.05)


def test_every_sample_has_its_own_time(recipe):
    if recipe.mode == "dsm":
        return
    random = np.random.default_rng(3)
    x0, t = random.normal(size=(5, 3, 4, 4)), random.uniform(1e-3, 1, 5)
    eps = random.normal(size=(5, recipe.k * 3, 4, 4))
    z = recipe.perturb(x0, t, eps)
    assert z.shape == eps.shape and z.dtype == np.float64
    for i in range(5):
        mean, factor = recipe.kernel(t[i]).mean, recipe.factor(t[i]).factor
        noise = np.tensordot(factor, eps[i].reshape(recipe.k, -1), 1)
        expected = mean[:, :1] * x0[i].reshape(1, -1) + noise
        assert np.allclose(z[i].reshape(recipe.k, -1), expected, rtol=1e-13, atol=1e-13)
    assert recipe.perturb(x0.astype(np.float32), t, eps.astype(np.float32)).dtype == np.float32


def test_target_is_the_noise_of_the_predicted_variables(recipe):
    eps = np.arange(2.0 * recipe.k * 3).reshape(2, recipe.k * 3)
    target = recipe.target(eps).reshape(2, len(recipe.predicted), 3)
    for i, variable in enumerate(recipe.predicted):
        assert np.array_equal(target[:, i], eps[:, 3 * variable : 3 * variable + 3])


def test_conversions_are_those_of_the_library(recipe):
    """eps, the score and clean data of an exact mixture, each by the library in its own way."""
    mixture = psld.Mixture([[-1, 0.2], [0.5, 0.4]], 0.3)
    source = mixture.source(recipe)
    z = mixture.draw(recipe, 0.3, 7)
    t = np.full(7, 0.3)
    eps, data = source(z, t), source.denoise(z, t)
    score = recipe.convert(eps, t, given="eps", to="score")
    assert np.allclose(recipe.convert(eps, t, z, given="eps", to="data"), data, atol=1e-7)
    assert np.allclose(recipe.convert(score, t, given="score", to="eps"), eps, atol=1e-10)
    assert np.allclose(recipe.convert(score, t, z, given="score", to="data"), data, atol=1e-7)
    assert np.allclose(recipe.convert(data, t, z, given="data", to="eps"), eps, atol=1e-6)
    assert np.allclose(recipe.convert(data, t, z, given="data", to="score"), score, rtol=1e-5, atol=1e-5)


def log_density(recipe, z, t, means, scale):
    """Of states under a mixture, by its kernel alone."""
    kernel = recipe.kernel(t)
    cov = kernel.cov + scale**2 * np.outer(kernel.mean[:, 0], kernel.mean[:, 0])
    total = []
    for m in means:
        d = z.reshape(recipe.k, -1) - kernel.mean[:, :1] * np.asarray(m)
        total.append(-0.5 * np.sum(d * np.linalg.solve(cov, d)) - 0.5 * d.shape[1] * np.linalg.slogdet(cov)[1])
    return np.logaddexp.reduce(total)


def test_the_score_is_the_gradient_of_the_density(recipe):
    means, scale, t = [[-1, 0.2], [0.5, 0.4]], 0.3, 0.3
    mixture = psld.Mixture(means, scale)
    z = mixture.draw(recipe, t, 1)[0]
    score = recipe.convert(mixture.source(recipe)(z[None], t), t, given="eps", to="score").reshape(-1, 2)
    for i, variable in enumerate(recipe.predicted):
        for j in range(2):
            h = 1e-5
            up, down = z.copy(), z.copy()
            up[2 * variable + j] += h
            down[2 * variable + j] -= h
            slope = (log_density(recipe, up, t, means, scale) - log_density(recipe, down, t, means, scale)) / (2 * h)
            assert abs(slope - score[i, j]) < 1e-4 * (1 + abs(slope))


def test_likelihood_weight_weighs_errors_of_the_score(recipe):
    t = np.array([0.05, 0.6])
    weight = recipe.likelihood_weight(t)
    p = len(recipe.predicted)
    assert weight.shape == (2, p, p)
    error = np.random.default_rng(0).normal(size=(2, p))
    score = recipe.convert(error, t, given="eps", to="score")
    D = recipe.D[np.ix_(recipe.predicted, recipe.predicted)]
    beta = recipe.beta[0] + (recipe.beta[1] - recipe.beta[0]) * t
    expected = 2 * beta * np.einsum("ti,ij,tj->t", score, D, score)
    assert np.allclose(np.einsum("ti,tij,tj->t", error, weight, error), expected, rtol=1e-9)
    loss = recipe.loss(error, np.zeros_like(error), t, "nll")
    assert np.isclose(loss, expected.mean() / p, rtol=1e-9)
    assert np.isclose(recipe.loss(error, np.zeros_like(error), t), np.mean(error**2))


def test_wrong_recipes_are_refused_with_the_reason():
    with pytest.raises(psld.InputError, match="D is not symmetric"):
        psld.Recipe(D=[[0.5, 0.2], [0, 0.5]], Q=[[0, 0], [0, 0]])
    with pytest.raises(psld.Error, match="psdl"):
        psld.Recipe("psdl")
    with pytest.raises(psld.ArgumentError):
        psld.Recipe()
    with pytest.raises(psld.ArgumentError, match="expected numbers"):
        psld.Recipe("vp").kernel("half")
    with pytest.raises(psld.ArgumentError):
        psld.Recipe("vp").kernel(1.5)
    with pytest.raises(psld.ArgumentError):
        psld.Recipe("vp").factor(0)
    with pytest.raises(psld.ArgumentError, match="hsm or dsm"):
        psld.Recipe("vp").kernel(0.5, "ssm")


def test_wrong_arrays_are_refused(recipe):
    x0, t, eps = draw(recipe, n=3)
    with pytest.raises(psld.ArgumentError):
        recipe.perturb(x0, t, eps[:, :1] if recipe.k > 1 else eps[:, :0], "hsm")
    with pytest.raises(psld.ArgumentError, match="one time"):
        recipe.perturb(x0, t[:2], eps, "hsm")
    with pytest.raises(psld.ArgumentError, match="give z"):
        recipe.convert(eps, t, given="eps", to="data")
    with pytest.raises(psld.ArgumentError, match="eps, score or data"):
        recipe.convert(eps, t, given="noise", to="data")


def test_plots_show_themselves(tmp_path):
    picture = psld.Recipe("psld gamma=0.02").plot(psld.Recipe("vp"), path=tmp_path / "page.png")
    assert picture._repr_svg_().startswith("<?xml") and (tmp_path / "page.png").read_bytes()[:4] == b"\x89PNG"
    picture.save(tmp_path / "page.svg")
    assert "<svg" in (tmp_path / "page.svg").read_text()
    with pytest.raises(psld.ArgumentError):
        picture.save(tmp_path / "page.png")


def test_presets_and_files():
    assert {"vp", "cld", "psld", "told"} <= set(psld.presets())
    assert psld.Recipe(f"{ROOT}/examples/three-way.yaml").k == 3
    assert psld.Recipe("psld", gamma=0.5, nu=2.5) == psld.Recipe("psld gamma=0.5 nu=2.5")
    assert psld.Recipe("vp", beta=[0.1, 20]).beta == (0.1, 20)
