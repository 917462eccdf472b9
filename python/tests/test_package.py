"""The package as a whole: its documentation, its types, its notebooks, its start."""

import doctest
import importlib
import os
import pkgutil
import re
import shutil
import subprocess
import sys

import pytest

import psld
from conftest import ROOT

EXAMPLES = os.path.join(ROOT, "examples")
MODULES = [m.name for m in pkgutil.iter_modules(psld.__path__) if not m.name.startswith("lib")]  # of a wheel: the library


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name):
    found = doctest.testmod(importlib.import_module("psld." + name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.failed == 0


def test_examples_of_the_tour(monkeypatch):
    """Those of the documentation, as one session."""
    monkeypatch.chdir(ROOT)
    path = os.path.join("docs", "reference", "python.md")
    with open(path, encoding="utf-8") as file:
        blocks = re.findall(r"^```python\n(.*?)^```$", file.read(), flags=re.M | re.S)
    assert len(blocks) >= 8
    test = doctest.DocTestParser().get_doctest("".join(blocks), {}, path, path, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL)
    runner.run(test)
    assert runner.failures == 0


def test_everything_public_is_documented():
    for name in psld.__all__:
        thing = getattr(psld, name)
        assert thing.__doc__ and len(thing.__doc__.strip()) > 10, name
        for part, member in vars(thing).items() if isinstance(thing, type) else ():
            if callable(member) and not part.startswith("_"):
                assert member.__doc__, f"{name}.{part}"


def test_types_hold_strictly():
    pytest.importorskip("mypy", reason="no mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, os.path.join(ROOT, "python", "psld")],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert done.returncode == 0, done.stdout


def test_only_numpy_is_imported():
    code = (
        "import sys, numpy; before = set(sys.modules); import psld; "
        "print(*{name.split('.')[0] for name in set(sys.modules) - before})"
    )
    found = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    assert set(found) <= set(sys.stdlib_module_names) | {"psld", "numpy"}


def test_a_library_of_another_version_is_refused(tmp_path):
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler")
    (tmp_path / "other.c").write_text('const char *psld_version(void) { return "9.1.0"; }\n')
    library = str(tmp_path / "other.so")
    subprocess.run([compiler, "-shared", "-fPIC", str(tmp_path / "other.c"), "-o", library], check=True)
    for path, says in ((library, "is version 9.1.0"), (str(tmp_path / "none.so"), "cannot be loaded")):
        done = subprocess.run(
            [sys.executable, "-c", "import psld"],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PSLD_LIBRARY": path},
        )
        assert done.returncode == 1 and says in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("name", ["process", "pytorch", "inverse"])
def test_notebooks_run(name, tmp_path):
    nbformat = pytest.importorskip("nbformat", reason="no nbformat to run notebooks with")
    nbclient = pytest.importorskip("nbclient", reason="no nbclient to run notebooks with")
    pytest.importorskip("ipykernel", reason="no ipykernel to run notebooks with")
    if name == "pytorch":
        pytest.importorskip("torch", reason="no torch for examples/pytorch.ipynb")
    notebook = nbformat.read(os.path.join(EXAMPLES, name + ".ipynb"), 4)
    nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.get("outputs") is not None


def test_notebooks_in_the_repository_are_executed():
    nbformat = pytest.importorskip("nbformat", reason="no nbformat to read notebooks with")
    for name in ("process", "pytorch", "inverse"):
        cells = [
            cell for cell in nbformat.read(os.path.join(EXAMPLES, name + ".ipynb"), 4).cells if cell.cell_type == "code"
        ]
        assert cells and all(cell.execution_count for cell in cells)
        assert not any(output.output_type == "error" for cell in cells for output in cell.outputs)
