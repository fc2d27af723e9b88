"""Stage 3: import a plugin and register it with pluggy, so that whatever it does wrong stays its own affair."""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pluggy

from proctor import hookspecs
from proctor.plugins._faults import Code, Fault, said, traceback_of
from proctor.plugins._kinds import KINDS
from proctor.plugins._scan import Source
from proctor.plugins._slow import said_when_slow
from proctor.plugins._source import source_spec

# The budget of a hooks module is 30 ms, and `proctor plugins doctor` holds it. A run only speaks up about what is felt.
SLOW_IMPORT = 1.0


class Loader:
    """Imports and registers modules, each once, however many entries name it.

    Args:
        clock: seconds, to time imports.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.pluggy = pluggy.PluginManager("proctor")
        self.pluggy.add_hookspecs(hookspecs)
        self._clock = clock
        self._outcomes: dict[str, ModuleType | Fault] = {}
        self.warnings: list[Fault] = []

    def load(self, module: str, source: Source) -> ModuleType | Fault:
        """The registered module, or what went wrong; the same answer each time."""
        if module not in self._outcomes:
            self._outcomes[module] = self._load(module, source)
        return self._outcomes[module]

    def implements(self, module: ModuleType, hook: str) -> bool:
        """Whether ``module`` has an implementation of ``hook``."""
        return any(found.plugin is module for found in getattr(self.pluggy.hook, hook).get_hookimpls())

    def loaded(self, module: str) -> bool:
        """Whether the module was imported and registered."""
        return isinstance(self._outcomes.get(module), ModuleType)

    def _load(self, name: str, source: Source) -> ModuleType | Fault:
        started = self._clock()
        try:
            with said_when_slow(_waiting(name, source)):
                module = import_file(Path(name)) if is_file(name) else importlib.import_module(name)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit and worse: a plugin must not end the program by being imported
            return import_fault(name, source, error)
        if (seconds := self._clock() - started) > SLOW_IMPORT:
            message = (
                f"Importing {name} of {source.label} took {seconds:.1f} s. A hooks module should import no SDK: "
                "see `proctor plugins doctor`."
            )
            self.warnings.append(Fault(Code.SLOW_IMPORT, message, source.name, module=name))
        return register(self.pluggy, module, name, source) or module


def _waiting(name: str, source: Source) -> str:
    way = f"--disable-plugin {source.name} leaves it out" if source.packaged else "it was given with --plugin"
    return f"still importing {_subject(name, source)}, which takes long: a hooks module should import no SDK; {way}."


def _subject(module: str, source: Source) -> str:
    """What a sentence is about; a file that was given with ``--plugin`` is its own source."""
    return f"{module} of {source.label}" if source.packaged else module


def source_of(spec: str) -> Source:
    """Where something given to ``--plugin`` comes from; a file's version is a digest of its text."""
    path = Path(spec).expanduser()
    if is_file(spec) and path.is_file():
        digest = hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest()
        return Source(spec, f"blake2b:{digest}", location=str(path.resolve()), packaged=False)
    return Source(spec, "", location=spec, packaged=False)


def is_file(name: str) -> bool:
    """Whether what was given to ``--plugin`` is a path, not the dotted name of a module."""
    return name.endswith(".py") or "/" in name or "\\" in name


def import_file(path: Path) -> ModuleType:
    """Import a file that no package holds; modules beside it can be imported by it."""
    path = path.expanduser().resolve()
    if not path.is_file():
        raise FileNotFoundError(f"{path} is no file")
    name = f"_proctor_plugin_{path.stem}_{hashlib.blake2b(str(path).encode(), digest_size=4).hexdigest()}"
    if name in sys.modules:
        return sys.modules[name]
    spec = source_spec(name, path)
    assert spec.loader is not None
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # last, so that nothing there hides a module of others
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def import_fault(module: str, source: Source, error: BaseException) -> Fault:
    """What a module did instead of being imported."""
    detail = traceback_of(error)
    if isinstance(error, SystemExit):
        message = f"{_subject(module, source)} ends the program when imported (SystemExit {error.code!r})."
        return Fault(Code.IMPORT_EXIT, message, source.name, module=module, detail=detail)
    message = f"{_subject(module, source)} can't be imported: {said(error)}."
    if isinstance(error, ImportError) and source.packaged:
        from proctor.plugins._missing import what_is_missing

        message += f" It {what_is_missing(error, module, source)}"
    return Fault(Code.IMPORT_ERROR, message, source.name, module=module, detail=detail)


def register(manager: pluggy.PluginManager, module: ModuleType, name: str, source: Source) -> Fault | None:
    """Register ``module`` and check its hooks; on a fault nothing of it stays registered."""
    if manager.is_registered(module):  # one module under two names, which pluggy refuses
        return None
    try:
        manager.register(module, name=name)
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        # Read before unregistering, which forgets them. Up to pluggy 1.6 a refused plugin stays registered, empty.
        unknown = _unknown_hooks(manager, module)
        _unregister(manager, name)
        if unknown:
            return _unknown(unknown[0], name, source)
        reason = str(error).replace("\n", "; ")
        message = f"A hook in {name} of {source.label} does not fit its specification: {reason.rstrip('.')}."
        return Fault(Code.BAD_HOOK, message, source.name, module=name)
    except Exception as error:  # register() reads every attribute of the module, and a lazy one may raise anything
        _unregister(manager, name)
        message = f"{name} of {source.label} can't be registered: {said(error)}."
        detail = traceback_of(error)
        return Fault(Code.BAD_HOOK, message, source.name, module=name, detail=detail)
    return None


def _unregister(manager: pluggy.PluginManager, name: str) -> None:
    if manager.get_plugin(name) is not None:
        manager.unregister(name=name)


def _unknown_hooks(manager: pluggy.PluginManager, module: ModuleType) -> list[str]:
    known = {kind.hook for kind in KINDS.values()}
    names = [name for name in dir(module) if manager.parse_hookimpl_opts(module, name) is not None]
    return [name for name in names if name not in known]


def _unknown(hook: str, module: str, source: Source) -> Fault:
    known = [kind.hook for kind in KINDS.values()]
    close = difflib.get_close_matches(hook, known, n=1, cutoff=0.5)
    hint = f"Did you mean {close[0]!r}?" if close else f"The hooks are: {', '.join(known)}."
    message = f"{module} of {source.label} implements {hook!r}, and there is no such hook. {hint}"
    return Fault(Code.UNKNOWN_HOOK, message, source.name, module=module)
