"""What makes a guard, what is refused at once, and where its page is looked for."""

from __future__ import annotations

import re
import types

import pytest

from han_solo import CheckContext, Finding, guard
from han_solo.declare import guard_spec_of
from han_solo.errors import DeclarationError
from han_solo.incidents import HEADINGS, find_page, shipped_pages
from han_solo.loader import load_registry, shipped_root

GUARD = '''
from han_solo import CheckContext, Finding, guard

@guard(every_s=30, incident="{incident}")
async def {name}(context: CheckContext) -> tuple[Finding, ...]:
    """Find nothing."""
    return ()
'''
SHIPPED = load_registry().guards


@pytest.fixture
def own(tmp_path):
    """Return an operator's own directory with a guard and its page in it."""
    root = tmp_path / "own"
    (root / "guards").mkdir(parents=True)
    (root / "docs" / "incidents").mkdir(parents=True)
    (root / "docs" / "incidents" / "quiet.md").write_text("# It was quiet\n")
    write(root / "guards" / "quiet.py", GUARD.format(name="quiet", incident="quiet"))
    return root


def write(path, text):
    path.write_text(text)
    path.chmod(0o644)


async def named_as_the_module(_context: CheckContext) -> tuple[Finding, ...]:
    """Find nothing."""
    return ()


named_as_the_module.__name__ = __name__.rpartition(".")[2]


async def remedy(_context, _findings):
    return "Done."


def declare(function=named_as_the_module, **options):
    return guard(**({"every_s": 60, "incident": "it"} | options))(function)


def copy_of(function, **changes):
    """Return a copy, so that one test's declaration is not another's."""
    copied = types.FunctionType(function.__code__, dict(function.__globals__), function.__name__)
    copied.__doc__ = function.__doc__
    for name, value in changes.items():
        setattr(copied, name, value)
    return copied


def test_declaring_returns_the_function_and_fixes_the_spec():
    function = copy_of(named_as_the_module)
    assert declare(function, remedy=remedy, mode="repair") is function
    spec = guard_spec_of(function)
    assert (spec.name, spec.every_s, spec.incident, spec.mode) == (
        "test_guard_declare", 60, "it", "repair",
    )  # fmt: skip
    assert spec.remedy is remedy
    assert spec.description == "Find nothing."
    assert re.search(r"test_guard_declare\.py:\d+$", spec.source)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"every_s": 0}, "every 0 s"),
        ({"every_s": -1}, "every -1 s"),
        ({"every_s": float("nan")}, "every nan s"),
        ({"incident": "Not a stem.md"}, "names the incident"),
        ({"incident": "../secret"}, "names the incident"),
        ({"mode": "fix"}, "has no mode 'fix'"),
        ({"mode": "repair"}, "has no remedy"),
        ({"remedy": lambda _context, _findings: "Done."}, "not an async function"),
    ],
)
def test_what_can_not_be_is_refused_at_once_with_its_place(options, said):
    with pytest.raises(DeclarationError, match=re.escape(said)) as caught:
        declare(copy_of(named_as_the_module), **options)
    assert "test_guard_declare.py:" in str(caught.value)
    assert caught.value.hint


def test_a_function_that_can_not_be_a_check_is_refused():
    for function, said in [
        (lambda _context: (), "lower-case"),
        (copy_of(named_as_the_module, __doc__=None), "no docstring"),
        (copy_of(named_as_the_module, __module__="han_solo_guards.other"), "not named as its file"),
    ]:
        with pytest.raises(DeclarationError, match=said):
            declare(function)


def test_a_function_that_is_no_guard_is_said():
    with pytest.raises(DeclarationError, match="is not a guard"):
        guard_spec_of(remedy)


# Loading


def guards(*roots):
    return {spec.name: spec for spec in load_registry(roots).guards}


def test_a_guard_of_the_operators_own_is_loaded_beside_the_shipped(own):
    assert guards(own).keys() - guards().keys() == {"quiet"}


def test_the_guard_of_the_guide_loads_as_it_stands_there(own):
    guide = (shipped_root() / "docs" / "guide.md").read_text()
    (example,) = re.findall(r"```python\n((?:(?!```).)*@guard.*?)```", guide, re.DOTALL)
    write(own / "guards" / "quiet.py", example)
    assert guards(own)["quiet"].every_s == 300


def test_a_guard_of_a_name_that_is_shipped_is_refused_with_both_places(own):
    name = SHIPPED[0].name
    write(own / "guards" / f"{name}.py", GUARD.format(name=name, incident="quiet"))
    with pytest.raises(DeclarationError, match=f"Two guards are named '{name}'") as caught:
        guards(own)
    assert str(caught.value).count(f"guards/{name}.py") == 2


def test_a_file_whose_guard_has_another_name_is_refused(own):
    write(own / "guards" / "loud.py", GUARD.format(name="quieter", incident="quiet"))
    with pytest.raises(DeclarationError, match="not named as its file"):
        guards(own)


def test_a_file_without_a_guard_is_refused_since_someone_believes_that_it_watches(own):
    write(own / "guards" / "loud.py", "async def loud(context):\n    return ()\n")
    with pytest.raises(DeclarationError, match=r"loud\.py has no guards") as caught:
        guards(own)
    assert "@guard" in str(caught.value.hint)


def test_a_helper_needs_no_guard(own):
    write(own / "guards" / "_words.py", "WORD = 1\n")
    assert "quiet" in guards(own)


# Pages


def test_the_page_of_an_operators_guard_lies_beside_its_guards(own):
    assert find_page(guards(own)["quiet"]) == own / "docs" / "incidents" / "quiet.md"


def test_a_guard_may_name_a_shipped_page(own):
    write(own / "guards" / "quiet.py", GUARD.format(name="quiet", incident="silent-switch"))
    assert find_page(guards(own)["quiet"]) == shipped_pages() / "silent-switch.md"


def test_a_page_that_is_not_there_is_none(own):
    write(own / "guards" / "quiet.py", GUARD.format(name="quiet", incident="never-happened"))
    assert find_page(guards(own)["quiet"]) is None


@pytest.mark.parametrize("spec", SHIPPED, ids=lambda spec: spec.name)
def test_every_shipped_guard_has_a_page_that_says_what_a_page_says(spec):
    page = find_page(spec)
    assert page is not None
    text = page.read_text()
    assert f"`{spec.name}`" in text
    headings = [found.partition(":")[0] for found in re.findall(r"^## (.+)$", text, re.MULTILINE)]
    assert [heading for heading in headings if heading in HEADINGS] == list(HEADINGS)
    assert re.match(r"# \S", text)


def test_every_page_is_named_by_something():
    named_by_guards = {spec.incident for spec in SHIPPED}
    places = [*shipped_root().glob("han_solo/**/*.py"), *shipped_root().glob("docs/*.md")]
    texts = "".join(path.read_text() for path in places)
    for page in shipped_pages().glob("*.md"):
        assert page.stem in named_by_guards or f"incidents/{page.name}" in texts, page
