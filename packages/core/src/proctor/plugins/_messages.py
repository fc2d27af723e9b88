"""What a person reads who asked for something that is not there."""

from __future__ import annotations

import difflib

from proctor.contracts import UsageError
from proctor.plugins._faults import Code, Fault
from proctor.plugins._kinds import Kind
from proctor.plugins._known import KNOWN
from proctor.plugins._scan import CORE, Entry, Source


def unknown(kind: Kind, name: str, offered: list[str]) -> UsageError:
    """Nothing offers ``name``: the close match, and the distribution that would provide it."""
    known = KNOWN.get(kind.name, {})
    parts = [f"There is no {kind.noun} {name!r}."]
    everything = {*offered, *known}
    close = [each for each in (name, name.lower()) if each in everything][:1]
    close = close or difflib.get_close_matches(name.lower(), everything, n=1)
    if close and close[0] in offered:
        parts.append(f"Did you mean {close[0]!r}?")
    elif close:
        if close[0] != name:
            parts.append(f"Did you mean {close[0]!r}?")
        distribution = known[close[0]]
        parts.append(f"{close[0]!r} comes with {distribution}: `pip install --upgrade {distribution}`.")
    if not close:
        parts.append(f"Installed: {', '.join(offered)}." if offered else "None is installed: see `proctor plugins`.")
    return UsageError(" ".join(parts))


def disabled(kind: Kind, entries: list[Entry]) -> UsageError:
    """All that offer the name are switched off."""
    sources = " and ".join(sorted({entry.source.name for entry in entries}))
    return UsageError(
        f"The {kind.noun} {entries[0].name!r} is offered by {sources}, which is disabled: take it out of "
        "--disable-plugin and PROCTOR_DISABLE_PLUGINS."
    )


def taken(kind: Kind, entries: list[Entry]) -> str:
    """Several distributions offer one name."""
    first, name = entries[0], entries[0].name
    labels = " and ".join(entry.source.label for entry in entries)
    if len({entry.source.name for entry in entries}) == 1:
        modules = " and ".join(entry.module for entry in entries)
        return f"{first.source.label} declares the {kind.noun} {name!r} twice, in {modules}. Report it to its authors."
    # The core and what was given with --plugin are what the person can hardly mean to lose.
    outside = [entry for entry in entries if entry.source.packaged and entry.source.name != CORE]
    if not outside:
        return (
            f"The {kind.noun} {name!r} is offered by {labels}, and only one of them can have the name. "
            f"Give yours another name, or switch the core's off: --disable-plugin {CORE}:{name}."
        )
    loser = outside[-1].source.name
    return (
        f"The {kind.noun} {name!r} is offered by {labels}, and only one of them can have the name. "
        f"Choose by switching the other off: --disable-plugin {loser}:{name} for this one name, or "
        f"--disable-plugin {loser} for all that it offers (also in PROCTOR_DISABLE_PLUGINS)."
    )


def reserved(kind: Kind, entry: Entry) -> Fault:
    """A name that the core keeps for itself."""
    message = (
        f"{entry.source.label} offers the {kind.noun} {entry.name!r}, which is the core's own and can't be replaced. "
        "Report it to its authors."
    )
    return Fault(Code.NAME_TAKEN, message, entry.source.name, kind.name, entry.name, entry.module)


def not_started(fault: Fault, source: Source) -> str:
    """A startup hook that did not run, or not to its end."""
    way = f"--disable-plugin {source.name}" if source.packaged else "leaving it out"
    return (
        f"{fault.message} The run goes on without this startup hook; `proctor plugins doctor` says more, {way} ends "
        "this warning."
    )


def broken(kind: Kind, name: str, fault: Fault) -> UsageError:
    """Something offers the name and can't be used."""
    return UsageError(f"The {kind.noun} {name!r} can't be used. {fault.message} Details: `proctor plugins doctor`.")


def unknown_disabled(item: str, known: list[str]) -> UsageError:
    """``--disable-plugin`` names nothing that is installed."""
    close = difflib.get_close_matches(item, known, n=1)
    hint = f"Did you mean {close[0]!r}?" if close else f"Installed: {', '.join(known)}."
    return UsageError(f"--disable-plugin {item}: no such distribution (or DISTRIBUTION:NAME) offers a plugin. {hint}")


def no_record(kind: Kind, name: str, module: str, source: Source, *, implemented: bool, undecorated: bool) -> Fault:
    """An entry point without a record: the hook returns another one, is not decorated, or is not there."""
    if implemented:
        what = f"{kind.hook} in {module} returns no record of that name"
    elif undecorated:
        what = f"{kind.hook} in {module} is not decorated with @hookimpl"
    else:
        what = f"{module} does not implement {kind.hook}"
    message = f"{source.label} declares the {kind.noun} {name!r}, but {what}. Report it to its authors."
    return Fault(Code.NO_RECORD, message, source.name, kind.name, name, module)


def undeclared(kind: Kind, name: str, module: str, source: Source) -> Fault:
    """A record without an entry point."""
    message = (
        f"{module} of {source.label} returns the {kind.noun} {name!r}, for which there is no entry point in group "
        f"{kind.group!r}: it can't be asked for. Reinstall the distribution, or report it to its authors."
    )
    return Fault(Code.UNDECLARED_RECORD, message, source.name, kind.name, name, module)
