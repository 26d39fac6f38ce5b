"""The architecture, held: no room of the library imports one beside or above it, and no modules import in a circle."""

import ast
import graphlib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
# from the ground up; docs/architecture.md has them as a picture
FLOORS = (
    ("annotations", "choices", "errors", "lazy", "versions", "types"),
    ("arguments", "storage", "processes", "populations"),
    ("pretrained", "kernels", "tensorboard"),
    ("responses", "tasks", "item_models"),
    ("networks", "integration", "fits"),
    ("training", "scoring"),
    ("estimation",),
    ("explanatory", "svi"),
    ("fitting",),
    ("comparison",),
    ("scale", "evaluation"),
    ("auditing", "crowd", "groups", "joint", "selection", "soft_labels", "synthetic"),
    ("plots",),
)
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
MODULES = {
    ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__"): path
    for folder in ("irtjax", "experiments")
    for path in sorted((REPOSITORY / folder).rglob("*.py"))
}


def imports(module: str) -> set[str]:
    """The modules of this repository that a module imports, within functions too."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute"
            inner = {f"{node.module}.{name.name}" for name in node.names} & MODULES.keys()
            found |= inner or {node.module}
    return found & MODULES.keys()


def room(module: str) -> str | None:
    package, _, rest = module.partition(".")
    return rest.partition(".")[0] if package == "irtjax" and rest else None


def test_every_room_has_a_floor():
    assert {room(module) for module in MODULES} - {None} == FLOOR_OF.keys()


@pytest.mark.parametrize("name", FLOOR_OF)
def test_no_room_imports_one_beside_or_above_it(name):
    wrong = {
        f"{module} imports {other}"
        for module in MODULES
        if room(module) == name
        for other in imports(module)
        if room(other) != name and not (room(other) and FLOOR_OF[room(other)] < FLOOR_OF[name])
    }
    assert not wrong


def test_no_modules_import_in_a_circle():
    graphlib.TopologicalSorter({module: imports(module) - {module} for module in MODULES}).prepare()


def test_the_library_imports_no_experiments_and_experiments_have_binaries_only_at_their_top():
    assert not {
        module for module in MODULES if room(module) and any(m.startswith("experiments") for m in imports(module))
    }
    for path in (REPOSITORY / "experiments").glob("*.py"):
        assert path.name == "__init__.py" or "app.run(main" in path.read_text(encoding="utf-8"), path
