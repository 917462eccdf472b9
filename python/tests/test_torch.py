"""Arrays of PyTorch and of JAX."""

import numpy as np
import pytest

import psld
from test_sample import MEANS


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="no torch")


@pytest.fixture
def jax():
    return pytest.importorskip("jax", reason="no jax")


def draws(recipe, n=6):
    random = np.random.default_rng(0)
    x0, t = random.normal(size=(n, 2, 3)), random.uniform(0.01, 1, n)
    return x0, t, random.normal(size=(n, recipe.k * 2, 3))


def start(recipe, x0, like=None):
    noise = np.random.default_rng(1).normal(size=(len(x0), (recipe.k - 1) * 2, 3))
    return recipe.start(x0, noise if like is None else like(noise)) if recipe.mode == "dsm" else x0


def test_perturbing_tensors_is_perturbing_arrays(torch, recipe):
    x0, t, eps = draws(recipe)
    expected = recipe.perturb(start(recipe, x0), t, eps)
    for dtype, bound in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        x, e = torch.tensor(x0, dtype=dtype), torch.tensor(eps, dtype=dtype)
        z = recipe.perturb(start(recipe, x, lambda a: torch.tensor(a, dtype=dtype)), torch.tensor(t, dtype=dtype), e)
        assert z.dtype == dtype and np.abs(z.numpy() - expected).max() < bound * np.abs(expected).max() * 10
    assert np.allclose(recipe.target(torch.tensor(eps)).numpy(), recipe.target(eps))
    weight = recipe.likelihood_weight(torch.tensor(t, requires_grad=True))
    assert isinstance(weight, torch.Tensor) and np.array_equal(weight.numpy(), recipe.likelihood_weight(t))


def test_gradients_flow_through_perturb(torch, recipe):
    x0, t, eps = draws(recipe, 2)
    x = torch.tensor(start(recipe, x0), requires_grad=True)
    e = torch.tensor(eps, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a, b: recipe.perturb(a, t, b), (x, e))
    target = recipe.target(e)
    assert torch.autograd.gradcheck(
        lambda a: recipe.loss(a, target.detach(), t, "nll"), (target.detach().requires_grad_(),)
    )
    z = recipe.perturb(x, t, e).detach()
    for given, to in (("eps", "data"), ("eps", "score"), ("score", "data")):
        out = recipe.convert(recipe.target(e), t, z, given=given, to=to)
        assert torch.autograd.grad(out.sum(), e, retain_graph=True)[0].abs().sum() > 0


def formula(recipe, xp, matrices):
    """The score of a mixture for arrays of NumPy or PyTorch."""

    def score(z, t):
        key = float(t[0])
        if key not in matrices:
            kernel = recipe.kernel(key)
            mu = kernel.mean[:, 0]
            matrices[key] = mu, np.linalg.inv(kernel.cov + 0.12**2 * np.outer(mu, mu))
        mu, precision = (xp.asarray(m, dtype=z.dtype) for m in matrices[key])
        centres = mu[:, None] * xp.asarray(MEANS, dtype=z.dtype)[:, None]
        d = z.reshape(len(z), 1, recipe.k, 2) - centres
        pull = xp.einsum("ab,ncbj->ncaj", precision, d)
        logits = -0.5 * xp.einsum("ncaj,ncaj->nc", d, pull)
        weight = xp.exp(
            logits - xp.max(logits, -1, keepdims=True)[0]
            if xp is not np
            else logits - np.max(logits, -1, keepdims=True)
        )
        weight = weight / weight.sum(1)[:, None]
        return -xp.einsum("nc,ncaj->naj", weight, pull).reshape(len(z), -1)

    return score


@pytest.mark.parametrize("sampler", ["em", "sscs", "dpm", "ancestral"])
def test_a_score_on_tensors_gives_the_samples_of_numpy(torch, sampler):
    recipe = psld.Recipe("psld gamma=0.02")
    options = dict(n=200, sampler=sampler, nfe=25, seed=2, predicts="score")
    expected = psld.sample(recipe, formula(recipe, np, {}), 2, dtype=np.float64, **options)
    found = psld.sample(recipe, formula(recipe, torch, {}), 2, like=torch.zeros(1, dtype=torch.float64), **options)
    assert isinstance(found, torch.Tensor) and found.dtype == torch.float64
    assert np.abs(found.numpy() - expected).max() < 1e-6


def test_modules_are_called_with_their_own_kind(torch):
    recipe, seen = psld.Recipe("psld gamma=0.02"), []

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(5, 4)

        def forward(self, z, t):
            seen.append((z.dtype, t.dtype, torch.is_grad_enabled()))
            return self.layer(torch.cat([z, t[:, None]], 1))

    x = psld.sample(recipe, Network(), 2, n=30, nfe=6)
    assert x.dtype == torch.float32 and x.shape == (30, 2) and not x.requires_grad
    assert set(seen) == {(torch.float32, torch.float32, False)} and torch.is_grad_enabled()
    with pytest.raises(psld.ArgumentError, match="found"):
        psld.sample(recipe, lambda z, t: z[:, :1], 2, n=3, nfe=4, like=torch.zeros(1))
    with pytest.raises(psld.NotFinite):
        psld.sample(recipe, lambda z, t: z / 0, 2, n=3, nfe=4, like=torch.zeros(1))


def test_tensors_of_doubles_are_not_copied(torch):
    addresses = set()

    def score(z, t):
        addresses.add(z.data_ptr())
        return torch.zeros_like(z)

    psld.sample("psld", score, 2, n=50, sampler="em", nfe=10, like=torch.zeros(1, dtype=torch.float64))
    assert len(addresses) == 1


def test_evaluation_takes_tensors(torch, digits):
    a = torch.randn(500, 3, generator=torch.Generator().manual_seed(0))
    assert psld.frechet(a, a) < 1e-6 and psld.sliced_wasserstein(a, a) == 0
    assert psld.show(torch.zeros(2, 1, 4, 4)).png and psld.to_pixels(torch.zeros(3)).dtype == np.uint8


def test_jax_arrays(jax):
    recipe = psld.Recipe("told")
    x0, t, eps = draws(recipe)
    jnp = jax.numpy
    z = recipe.perturb(jnp.asarray(x0), t, jnp.asarray(eps))
    assert type(z).__module__.startswith("jax") and np.allclose(np.asarray(z), recipe.perturb(x0, t, eps), atol=1e-4)
    slope = jax.grad(lambda x: recipe.perturb(x, t, jnp.asarray(eps)).sum())(jnp.asarray(x0))
    means = recipe.kernel(t).mean[:, :, 0].sum(1)
    assert np.allclose(np.asarray(slope), np.broadcast_to(means[:, None, None], x0.shape), atol=1e-4)
    x = psld.sample("vp", lambda z, t: -z, 2, n=20, nfe=5, predicts="score", like=jnp.zeros(1))
    assert type(x).__module__.startswith("jax") and x.shape == (20, 2)
