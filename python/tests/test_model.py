"""Models do what the commands do, bit for bit."""

import os
import pickle
import threading

import numpy as np
import pytest

import psld
from conftest import MODELS, ROOT

DIGITS = os.path.join(MODELS, "digits.safetensors")
JUDGE = os.path.join(MODELS, "digits-classifier.safetensors")


def test_what_a_model_is(digits):
    assert digits.kind == "score" and digits.shape == (1, 28, 28) and digits.recipe.k == 2
    assert digits.parameters > 100000 and digits.predicts in ("data", "eps")
    judge = psld.Model("digits-classifier")
    assert judge.kind == "classifier" and judge.classes == tuple("0123456789")
    assert "digits" in repr(digits)
    again = pickle.loads(pickle.dumps(digits))
    assert np.array_equal(again.sample(1, nfe=2), digits.sample(1, nfe=2))


def test_names_of_what_comes_with_psld(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert psld.Model("digits").kind == psld.Model("digits.safetensors").kind == "score"
    (tmp_path / "digits").mkdir()
    with pytest.raises(psld.Error, match="digits"):
        psld.Model("digits")  # what is here comes first
    with pytest.raises(psld.FileError, match="digit"):
        psld.Model("digit")


@pytest.mark.parametrize(
    "more, options",
    [
        (("--nfe", 5, "--seed", 4), dict(nfe=5, seed=4)),
        (("--quality", "draft"), dict(quality="draft")),
        (
            ("--nfe", 4, "--weak", "none", "--process", "vp", "--state"),
            dict(nfe=4, weak="none", process="vp", state=True),
        ),
        (("--sampler", "sscs", "--nfe", 4, "--clip", 1), dict(sampler="sscs", nfe=4, clip=1)),
    ],
)
def test_samples(program, digits, more, options):
    assert np.array_equal(digits.sample(3, **options), program.array("sample", DIGITS, "-n", 3, *more))


def test_a_weak_model_that_is_asked_for(program, digits):
    more = ("--nfe", 3, "--weak", DIGITS, "--weak-scale", 2)
    assert np.array_equal(
        digits.sample(2, nfe=3, weak=DIGITS, weak_scale=2), program.array("sample", DIGITS, "-n", 2, *more)
    )


def test_guidance(program, digits):
    expected = program.array("guide", DIGITS, "--classifier", JUDGE, "--label", "all", "-n", 1, "--nfe", 3)
    assert np.array_equal(digits.guide("all", 1, classifier="digits-classifier", nfe=3), expected)
    one = program.array("guide", DIGITS, "--classifier", JUDGE, "--label", 7, "-n", 2, "--nfe", 3, "--scale", 5)
    assert np.array_equal(digits.guide(7, 2, classifier=psld.Model(JUDGE), nfe=3, scale=5), one)
    with pytest.raises(psld.InputError, match="give a classifier"):
        digits.guide(7)
    with pytest.raises(psld.Error, match="recipe"):
        digits.guide(7, classifier=JUDGE, process="vp")


def test_exact_guidance(program, ring):
    path = os.path.join(ROOT, "examples", "ring.yaml")
    expected = program.array("guide", path, "--label", 3, "-n", 50, "--nfe", 9)
    assert np.array_equal(ring.guide(3, 50, nfe=9), expected)


@pytest.mark.parametrize(
    "more, options",
    [
        (("--repeats", 2), dict(repeats=2)),
        (("--method", "replace"), dict(method="replace")),
        (
            ("--method", "authors", "--label", 3, "--classifier", JUDGE),
            dict(method="authors", label=3, classifier=JUDGE),
        ),
    ],
)
def test_inpainting(program, digits, pixels, more, options):
    np.save(os.path.join(program.folder, "x.npy"), pixels)
    expected = program.array("inpaint", DIGITS, "--image", "x.npy", "--rect", "0,14,28,14", "-n", 2, "--nfe", 3, *more)
    found = digits.inpaint(pixels, rect=(0, 14, 28, 14), n=2, nfe=3, **options)
    assert np.array_equal(found, expected)
    mask = np.zeros((28, 28))
    mask[14:] = 1
    assert np.array_equal(
        digits.inpaint(os.path.join(program.folder, "x.npy"), mask=mask, n=2, nfe=3, **options), expected
    )
    known = pixels[0, 0, :14] / 127.5 - 1
    assert options.get("method") == "authors" or np.array_equal(found[0, 0, :14], known.astype(np.float32))


@pytest.mark.parametrize(
    "task, options",
    [
        ("denoise", dict(noise=0.5)),
        ("super-resolution", dict(factor=7, noise=0.1)),
        ("deblur", dict(blur=1.5, noise=0.05, method="diffused")),
        ("inpaint", dict(rect=(3, 3, 9, 9), noise=0.1)),
    ],
)
def test_restoration(program, digits, pixels, task, options):
    np.save(os.path.join(program.folder, "x.npy"), pixels)
    more = [
        word
        for name, value in options.items()
        for word in (f"--{name}", ",".join(map(str, value)) if isinstance(value, tuple) else value)
    ]
    expected = program.array("restore", DIGITS, "--task", task, "--image", "x.npy", "-n", 1, "--nfe", 3, *more)
    assert np.array_equal(digits.restore(task, pixels, n=1, nfe=3, **options), expected)


def test_restoration_of_measurements(program, ring):
    matrix = np.array([[1.0, 0.5]])
    path, folder = os.path.join(ROOT, "examples", "ring.yaml"), program.folder
    np.save(os.path.join(folder, "A.npy"), matrix)
    np.save(os.path.join(folder, "y.npy"), [[0.4]])
    expected = program.array(
        "restore",
        path,
        "--task",
        "linear",
        "--matrix",
        "A.npy",
        "--noise",
        0.1,
        "--image",
        "y.npy",
        "--degraded",
        "-n",
        20,
        "--nfe",
        9,
    )
    found = ring.restore("linear", [[0.4]], matrix=matrix, noise=0.1, degraded=True, n=20, nfe=9)
    assert np.array_equal(found, expected)
    assert psld.measure("linear", [[1.0, 2.0]], matrix=matrix)[0, 0] == 2


def test_encoding_and_back(program, digits, pixels):
    folder = program.folder
    np.save(os.path.join(folder, "x.npy"), pixels)
    program("encode", DIGITS, "x.npy", "--nfe", 6, "-o", "z.npy")
    z = digits.encode(pixels, nfe=6)
    assert np.array_equal(z, np.load(os.path.join(folder, "z.npy")))
    assert np.array_equal(digits.sample(z0=z, nfe=6), program.array("sample", DIGITS, "--z0", "z.npy", "--nfe", 6))
    for i, name in enumerate("ab"):
        np.save(os.path.join(folder, name + ".npy"), pixels[i])
    program("interpolate", DIGITS, "a.npy", "b.npy", "-n", 3, "--nfe", 6, "-o", "strip.npy")
    assert np.array_equal(
        digits.interpolate(pixels[0], pixels[1], 3, nfe=6), np.load(os.path.join(folder, "strip.npy"))
    )


def test_denoising(program, digits):
    x = digits.sample(2, nfe=4) + np.float32(0.3)
    folder = program.folder
    np.save(os.path.join(folder, "x.npy"), x)
    np.save(os.path.join(folder, "s.npy"), np.array([0.3, 0.5]))
    expected = program.array("score", DIGITS, "--x", "x.npy", "--sigma", "s.npy")
    assert np.array_equal(digits.denoise(x, [0.3, 0.5]), expected)
    assert digits.denoise(x, 0.3).dtype == np.float32


def test_likelihood_of_a_gaussian_is_its_own():
    model = "process: vp\nmixture: {weights: [1], means: [[0.3, -0.2]], scales: 0.5}\n"
    with open_model(model) as gaussian:
        x = np.random.default_rng(0).normal(size=(20, 2))
        expected = -np.sum((x - [0.3, -0.2]) ** 2, 1) / (2 * 0.25) - np.log(2 * np.pi * 0.25)
        assert np.allclose(gaussian.likelihood(x), expected, rtol=3e-3)
        assert np.isclose(psld.nll(gaussian, x).nats, -expected.mean(), rtol=3e-3)


class open_model:
    def __init__(self, text):
        self.text = text

    def __enter__(self):
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        path = os.path.join(self.folder.name, "model.yaml")
        with open(path, "w") as file:
            file.write(self.text)
        return psld.Model(path)

    def __exit__(self, *error):
        self.folder.cleanup()


def test_trajectories_end_near_the_samples(digits):
    frames = digits.trajectory(2, 4, nfe=6, seed=1)
    assert frames.shape == (2, 4, 1, 28, 28)
    assert np.abs(frames[:, -1] - digits.sample(2, nfe=6, seed=1)).max() < 1e-5


def test_wrong_input_is_named(digits, ring, pixels):
    for call, says in [
        (lambda: ring.sample(2, label=3), "takes no labels"),
        (lambda: ring.sample(2, cfg=2), "takes no labels"),
        (lambda: digits.inpaint(pixels), "unknown part"),
        (lambda: digits.inpaint(pixels[:, :, :5], rect=(0, 0, 1, 1)), "28"),
        (lambda: digits.inpaint(pixels, rect=(20, 20, 20, 20)), "beyond"),
        (lambda: digits.inpaint(pixels, mask=np.zeros((28, 28))), "nothing is unknown"),
        (lambda: digits.inpaint(pixels, mask=np.ones((5, 5))), "fit=True"),
        (lambda: digits.inpaint(pixels, rect=(0, 0, 1, 1), method="hope"), "resample"),
        (lambda: digits.restore("sharpen", pixels), "sharpen"),
        (lambda: digits.restore("linear", pixels), "matrix"),
        (lambda: digits.restore("deblur", pixels, rect=(0, 0, 1, 1)), "inpaint"),
        (lambda: digits.sample(z0=np.zeros((2, 3))), "z0"),
        (lambda: digits.sample(2, start="exact"), "exact"),
        (lambda: digits.encode(np.full((1, 28, 28), np.nan)), "not finite"),
        (lambda: digits.guide(12, classifier=JUDGE), "12"),
        (lambda: digits.classify(np.zeros((1, 2)), 0.5), "classifier"),
        (lambda: psld.Model(JUDGE).sample(2), "no samples"),
        (lambda: psld.Model(DIGITS, use="both"), "ema or raw"),
    ]:
        with pytest.raises(psld.Error, match=says):
            call()
    assert digits.sample(1, nfe=2).shape == (1, 1, 28, 28)


def test_classifiers_and_sources(digits):
    judge = psld.Model(JUDGE)
    z = digits.sample(3, nfe=4, state=True)
    assert judge.classify(z, 0.1).shape == (3, 10)
    eps = digits.source(z, 0.2)
    assert eps.shape == (3, len(digits.recipe.predicted), 28, 28) and eps.dtype == np.float64
    drawn = psld.sample(digits.recipe, lambda z, t: digits.source(z, t), digits.shape, n=3, nfe=5, exact=False)
    assert np.array_equal(drawn, digits.sample(3, nfe=5, label="none"))


def test_calls_of_one_model_take_turns(digits):
    found = {}

    def work(seed):
        found[seed] = digits.sample(2, nfe=4, seed=seed)

    jobs = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    for seed in range(4):
        assert np.array_equal(found[seed], digits.sample(2, nfe=4, seed=seed))


def test_pictures(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (5, 3, 4, 6), dtype=np.uint8)
    picture = psld.show(images, columns=2, zoom=2)
    picture.save(tmp_path / "grid.png")
    grid = psld.load_image(tmp_path / "grid.png")
    assert grid.shape == (3, 3 * 8, 2 * 12)
    assert np.array_equal(grid[:, :8:2, :12:2], images[0]) and np.array_equal(grid[:, 8:16:2, 12::2], images[3])
    assert picture._repr_png_() == (tmp_path / "grid.png").read_bytes()
    assert np.array_equal(psld.to_pixels([-1, 1, 0.5], "floor"), [0, 255, 191])
    with pytest.raises(psld.ArgumentError):
        psld.show(np.zeros((3, 2, 4, 4)))


def test_timesteps_with_more_noise_than_vp_reaches():
    folder = os.path.join(ROOT, "tests", "golden", "foreign", "diffusers-scale-shift")
    model, z0 = psld.Model(folder), np.load(os.path.join(folder, "x.npy"))
    how = dict(z0=z0, timesteps=[499, 400, 10], sampler="dpm", order=1, no_denoise=True)
    assert np.allclose(model.sample(**how), model.sample(process="vp beta=[0.1,40]", **how), rtol=1e-4)
