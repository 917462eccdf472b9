"""The declarations for ctypes are those of the headers."""

import ctypes
import os
import shutil
import subprocess
import sys

import pytest

import psld
from psld import _c
from conftest import ROOT

HEADERS = ("psld.h", "psld_data.h", "psld_train.h", "psld_eval.h", "psld_plot.h", "psld_ranks.h")


def test_they_are_what_the_headers_say():
    done = subprocess.run(
        [sys.executable, os.path.join(ROOT, "tools", "make-declarations"), "--check"], stderr=subprocess.PIPE, text=True
    )
    assert done.returncode == 0, done.stderr


def structs():
    return {
        name: kind
        for name, kind in vars(_c).items()
        if isinstance(kind, type) and issubclass(kind, ctypes.Structure) and name.startswith("psld_")
    }


def test_a_compiler_lays_them_out_alike(tmp_path):
    """Sizes and offsets of all fields, values of all constants, and what initialisers set, by the compiler."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if not compiler:
        pytest.skip("no C compiler")
    lines, expected = [], []
    for name, kind in structs().items():
        lines.append(f'printf("%zu\\n", sizeof({name}));')
        expected.append(str(ctypes.sizeof(kind)))
        for field, *_ in kind._fields_:
            lines.append(f'printf("%zu %zu\\n", offsetof({name}, {field}), sizeof((({name} *)0)->{field}));')
            expected.append(f"{getattr(kind, field).offset} {getattr(kind, field).size}")
    for name, value in vars(_c).items():
        if name.startswith("PSLD_"):
            lines.append(f'printf("%.17g\\n", (double){name});')
            expected.append(f"{float(value):.17g}")
    for macro in _c.INITIAL:
        kind = _c.INITIAL[macro][0]
        lines.append(
            f"{{ static {kind.__name__} s = {macro}; const unsigned char *b = (const unsigned char *)&s; "
            f'(void)b; printf("{macro}"); for (size_t i = 0; i < sizeof s; i++) printf(" %d", b[i]); puts(""); }}'
        )
        expected.append(None)  # pointers to texts differ: compared by value below
    source = tmp_path / "layout.c"
    source.write_text(
        "#include <stddef.h>\n#include <stdio.h>\n"
        + "".join(f'#include "{name}"\n' for name in HEADERS)
        + "int main(void)\n{\n"
        + "\n".join(lines)
        + "\nreturn 0;\n}\n"
    )
    program = str(tmp_path / "layout")
    subprocess.run([compiler, "-std=c11", "-I", os.path.join(ROOT, "include"), str(source), "-o", program], check=True)
    found = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    from psld._library import initial

    for line, value in zip(found, expected):
        if value is not None:
            assert line == value
            continue
        macro, *values = line.split()
        struct = initial(macro)
        theirs = type(struct).from_buffer_copy(bytes(map(int, values)))
        for field, kind, *_ in struct._fields_:
            if kind is not ctypes.c_char_p:
                assert bytes_of(struct, field) == bytes_of(theirs, field), (macro, field)


def bytes_of(struct, field):
    place = getattr(type(struct), field)
    return ctypes.string_at(ctypes.addressof(struct) + place.offset, place.size)


def test_every_function_is_there():
    from psld._library import lib

    assert len(_c.FUNCTIONS) > 150
    for name in _c.FUNCTIONS:
        getattr(lib, name)


def test_the_version_is_that_of_the_library():
    assert psld.__version__ == psld.version() == _c.VERSION
