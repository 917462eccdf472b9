"""What the tests share: the program, whose output is the truth, and small models."""

import os
import subprocess

import numpy as np
import pytest

import psld

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODELS = os.path.join(ROOT, "models")
RECIPES = [
    "vp",
    "cld",
    "psld gamma=0.02",
    "psld gamma=0.5 factor=upper",
    "psld gamma=0.1 nu=2 m_inv=4 kernel=dsm",
    "told",
    os.path.join(ROOT, "examples", "three-way.yaml"),
]


class Program:
    """The command-line program."""

    def __init__(self, path, folder):
        self.path, self.folder = path, str(folder)

    def __call__(self, *words):
        words = [str(word) for word in words]
        done = subprocess.run(
            [self.path, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder
        )
        assert done.returncode == 0, f"psld {' '.join(words)}: {done.stderr}"
        return done.stdout

    def array(self, *words):
        """What a command writes to -o."""
        self(*words, "-o", "out.npy")
        return np.load(os.path.join(self.folder, "out.npy"))


@pytest.fixture
def program(tmp_path):
    path = os.environ.get("PSLD") or os.path.join(ROOT, "build", "psld")
    if not os.access(path, os.X_OK):
        pytest.skip("no program to compare with: build it, or name it by PSLD")
    return Program(path, tmp_path)


@pytest.fixture(scope="session")
def digits():
    return psld.Model(os.path.join(MODELS, "digits.safetensors"))


@pytest.fixture(scope="session")
def pixels(digits):
    """Two pictures, as pixels."""
    return psld.to_pixels(digits.sample(2, seed=9, nfe=8))


@pytest.fixture
def ring():
    return psld.Model(os.path.join(ROOT, "examples", "ring.yaml"))


@pytest.fixture(params=RECIPES, ids=lambda text: os.path.basename(text).split(".yaml")[0])
def recipe(request):
    return psld.Recipe(request.param)
