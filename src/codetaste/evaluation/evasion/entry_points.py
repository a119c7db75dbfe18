"""Source files that a tool or a framework uses without another file that names them.

What a framework finds by its folder or name counts only if R has a mark of the framework in a folder above.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from codetaste.evaluation.evasion.lexical import suffix_of

if TYPE_CHECKING:
    from pathlib import Path

JVM = frozenset({"java", "kt", "scala", "groovy"})
_TEST = re.compile(
    r"(?:^|/)(?:test_[^/]*|conftest|Test[A-Z][^/]*"
    r"|[^/]*(?:_test|\.test|\.spec|\.stories|\.cy|_spec|Tests?|TestCase|Spec|IT))\.\w+$"
    r"|(?:^|/)(?:tests?|__tests__|spec)/"
)
_PROGRAM = re.compile(
    r"(?:^|/)(?:__main__|doc|package-info|\.[^/]*|[^/]*\.config|[^/]*\.d)\.\w+$"
    r"|^(?:src/)?(?:main|setup|manage|build|lib)\.\w+$"
)
_RUNS_BY_ITSELF = re.compile(rb"^func (?:init|main)\(|^#!|^if __name__[ \t]*==", re.MULTILINE)
_ANNOTATED = re.compile(
    rb"^[ \t]*@(?:\w+\.)*+(?:Component|Service|Repository|(?:Rest)?Controller(?:Advice)?|Configuration|Bean"
    rb"|AutoConfiguration|SpringBootApplication|Entity|Embeddable|MappedSuperclass|Converter|Path|Provider|Named"
    rb"|Singleton|ApplicationScoped|RequestScoped|Stateless|WebServlet|WebFilter|Mapper|Module|AutoService|Plugin"
    rb"|Test|ParameterizedTest|RunWith|ExtendWith|HiltViewModel|AndroidEntryPoint)\b",
    re.MULTILINE,
)
"""What frameworks and test programs of the JVM find by its annotation."""


@dataclass(frozen=True, slots=True)
class _Framework:
    """A framework: what it finds, and what R has in a folder above if it uses the framework."""

    places: re.Pattern[str]
    marks: tuple[str, ...]


_FRAMEWORKS = (
    _Framework(  # Ruby on Rails
        re.compile(r"(?:^|/)(?:app|config|db|lib/tasks)/(?:[^/]+/)*+[^/]+\.rb$"),
        ("config/application.rb", "config/routes.rb"),
    ),
    _Framework(  # Django
        re.compile(
            r"(?:^|/)(?:(?:migrations|management/commands|templatetags)/[^/]+"
            r"|apps|models|admin|urls|signals|settings)\.py$"
        ),
        ("manage.py", "settings.py", "migrations", "apps.py"),
    ),
    _Framework(  # Next.js, Nuxt, SvelteKit, Astro, Gatsby
        re.compile(
            r"(?:^|/)(?:pages/(?:[^/]+/)*+[^/]+|routes/(?:[^/]+/)*+\+[^/]+|middleware|instrumentation"
            r"|app/(?:[^/]+/)*+(?:page|layout|route|loading|error|not-found|template|default))\.(?:[jt]sx?|vue)$"
        ),
        (
            *(
                f"{name}.config.{end}"
                for name in ("next", "nuxt", "svelte", "astro")
                for end in ("js", "mjs", "ts")
            ),
            *(f"{name}.{end}" for name in ("pages/_app", "app/layout") for end in ("js", "jsx", "tsx")),
            "gatsby-config.js",
        ),
    ),
    _Framework(  # Cargo
        re.compile(
            r"(?:^|/)(?:build|src/(?:main|lib)|src/bin/[^/]+|src/bin/[^/]+/main"
            r"|(?:examples|benches)/[^/]+|(?:examples|benches)/[^/]+/main)\.rs$"
        ),
        ("Cargo.toml",),
    ),
)


def is_found_by_place(path: str, base: Path) -> bool:
    """Whether ``path`` is used because of its name and folder; ``base`` is the folder with R."""
    if _TEST.search(path) or _PROGRAM.search(path):
        return True
    marks = {mark for each in _FRAMEWORKS if each.places.search(path) for mark in each.marks}
    return any((base / folder / mark).exists() for folder in PurePosixPath(path).parents for mark in marks)


def runs_by_itself(path: str, content: bytes) -> bool:
    """Whether ``content`` says that a tool or a framework runs it."""
    return bool(_RUNS_BY_ITSELF.search(content) or (suffix_of(path) in JVM and _ANNOTATED.search(content)))
