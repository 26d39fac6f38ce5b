"""What other code reads of the package by its dots is there as soon as the package is imported."""

import ast
import subprocess
import sys

from conftest import REPOSITORY

RESOLVE = """
import functools, irtjax, sys
for name in sys.stdin.read().split():
    try:
        functools.reduce(getattr, name.split(".")[1:], irtjax)
    except AttributeError as error:
        print(f"{name}: {error}")
"""


def chains_of(tree):
    """Names such as irtjax.fitting.fit that code reads, the longest of each, but for those of modules it imports."""
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        parts = []
        while isinstance(node, ast.Attribute) and (parts or id(node) not in inner):
            parts.append(node.attr)
            node = node.value
        if parts and isinstance(node, ast.Name) and node.id == "irtjax":
            name = ".".join(["irtjax", *reversed(parts)])
            if not any(name.startswith(f"{module}.") for module in imported if "." in module):
                yield name


def test_names_are_there():
    files = [path for room in ("benchmarks", "experiments") for path in (REPOSITORY / room).rglob("*.py")]
    found = {name for path in files for name in chains_of(ast.parse(path.read_text()))}
    assert "irtjax.fit" in found
    ended = subprocess.run(
        [sys.executable, "-c", RESOLVE],
        input="\n".join(sorted(found)),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    assert not ended.stdout
