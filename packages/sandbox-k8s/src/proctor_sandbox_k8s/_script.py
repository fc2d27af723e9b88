r"""The shell text that runs a command in a container, and says how it went so that nothing can be lost unseen.

An exec of Kubernetes has no user, no directory, no variables and no time-out, ends a command's input only in its newest
protocol, and takes a stream that was cut for one that ended. So what is executed is a shell with a few lines:

1. It says ``<token> ready``. Until then nothing was sent to it, so an attempt that fails earlier did nothing and may be
   made again; after it none is.
2. It reads a program, line by line, up to ``<token> go``: half a program is never run.
3. The program runs the command between two ``dd`` that pass on its output and count it, and a ``head`` that gives it
   exactly as many bytes of input as there are. When the command ends, ``<token> end`` follows what it wrote on both
   streams, with its exit code and the count of its input; and when both streams are closed, their counts.

A command that leaves something in the background does not close its streams: then the counts are missing, but both
ends are there. ``dd`` gives way to a ``cat`` when nobody listens any more, so what is left behind can go on writing.

Everything is plain POSIX shell, for dash, bash and BusyBox alike.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["BLOCK", "BOOT", "KILL", "MARK", "READ", "WRITE", "Command", "boot", "program"]

MARK = "PROCTOR_EXEC"
"""The variable by which the processes of a command are known, wherever they have got to."""

BLOCK = 4096
"""Bytes of a block of input: where ``dd`` counts no bytes (BusyBox may be built so), whole blocks are counted."""

BOOT = """\
echo "$1 ready"; s=; while IFS= read -r l; do
if [ "$l" = "$1 go" ]; then eval "$s"; exit; fi
s="$s$l
"; done; exit 111"""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# Descriptors: 3 and 4 are this connection's stdout and stderr, 5 its stdin; 6 and 7 the command's; 8 the pipe of its
# stderr; 9 what is told of the command and of the relays.
_PROGRAM = """\
t={token}
relay() {{
trap '' PIPE
c=$(LC_ALL=C dd bs=65536 2>&1 >&"$2")
printf '@%s %s\\n' "$1" "$(echo $c)" >&9
exec cat
}}
{inner}
run() {{
{mark}={value}; export {mark}
{switch}
}}
body() {{
{{ x=$( exec 9>&1 1>&6 6>&- 2>/dev/null
{feed}( run ) {source}2>&7 7>&- 5<&-
printf ' code %s ' "$?" >&9 ); }} 6>&1 7>&2
printf '%s end %s\\n' "$t" "$(echo $x)"
printf '%s end\\n' "$t" >&2
}}
exec 3>&1 4>&2 5<&0 </dev/null
n=$( exec 9>&1
{{ body 2>&8 3>&- 4>&- 8>&- 9>&- | relay 1 3 5<&- 8>&- >/dev/null; }} 8>&1 | relay 2 4 5<&- >/dev/null )
printf '%s counts %s\\n' "$t" "$(echo $n)"
"""

_INNER = """\
cd {cwd} 2>/dev/null || {{
[ -d {cwd} ] && k=cwd-denied || {{ [ -e {cwd} ] && k=cwd-file || k=cwd-missing; }}
echo " kind $k " >&9; exit 1; }}
PATH=${{PATH:-{path}}}; export PATH
{exports}
set -- {words}
case $1 in
*/*) p=$1;;
*) p=; o=$IFS; IFS=:; set -f
for d in $PATH; do [ -f "${{d:-.}}/$1" ] && p=${{d:-.}}/$1 && [ -x "$p" ] && break; done
IFS=$o; set +f;;
esac
[ -e "$p" ] || {{ echo " kind missing " >&9; exit 1; }}
if [ -d "$p" ] || [ ! -x "$p" ]; then echo " kind denied " >&9; exit 1; fi
exec {env}"$@" 9>&-
"""

_SWITCH = """\
u={user} n=; me=$(id -u)
while IFS=: read -r a b c d; do
if [ "$a" = "$u" ] || [ "$c" = "$u" ]; then n=$a; u=$c; break; fi; done </etc/passwd
if [ "$u" = "$me" ]; then echo " kind in " >&9; eval "$inner"; exit; fi
[ "$me" = 0 ] || {{ echo " kind not-root " >&9; exit 1; }}
if [ -n "$n" ]; then exec su -s /bin/sh -c "echo ' kind in ' >&9
$inner" "$n"; fi
case $u in ''|*[!0-9]*) echo " kind no-user " >&9; exit 1;; esac
exec setpriv --reuid="$u" --regid="$u" --clear-groups sh -c "echo ' kind in ' >&9
$inner"
"""

KILL = f"""\
n=0 none=0
while [ $n -lt 100 ]; do
f=$(grep -ls "{MARK}=$1" /proc/[0-9]*/environ)
if [ -n "$f" ]; then none=0; else none=$((none+1)); fi
[ $none -lt 2 ] || exit 0
for p in $f; do p=${{p#/proc/}}; kill -9 "${{p%/environ}}"; done 2>/dev/null
n=$((n+1)); sleep 0.05 2>/dev/null || sleep 1
done
exit 1"""
"""Kills all that has the mark ``$1``, until two looks around find nothing: in the middle of execve(2) a process shows
no environment, which hardly lasts from one look to the next."""

READ = """\
[ -d "$1" ] && exit 42
[ -e "$1" ] || exit 41
[ -r "$1" ] || exit 43
if [ -f "$1" ] && [ "$(wc -c <"$1")" -gt "$2" ]; then exit 44; fi
cat "$1" || exit 45"""

WRITE = """\
[ -d "$1" ] && exit 42
mkdir -p "${1%/*}/" || exit 45
if [ -e "$1" ] && [ ! -w "$1" ]; then exit 43; fi
{ cat >"$1"; } || exit 45"""


@dataclass(frozen=True, slots=True)
class Command:
    """What is to be run.

    Args:
        words: the program and its arguments.
        cwd: an absolute path.
        input: what it reads.
        env: variables.
        user: a name or a number; ``None`` = the container's own.
    """

    words: Sequence[str]
    cwd: str = "/"
    input: bytes = b""
    env: Mapping[str, str] | None = None
    user: str | None = None


def boot(token: str) -> list[str]:
    """What is executed in the container."""
    return ["sh", "-c", BOOT, "proctor", token]


def program(command: Command, token: str, mark: str) -> bytes:
    """What the shell is sent when it is ready; the command's input follows.

    Args:
        command: what is to be run.
        token: by which what the program itself says is known; never the one of ``boot``, which others can see.
        mark: of the command's processes.
    """
    size = len(command.input)
    inner = _inner(command)
    switched = command.user is not None
    text = _PROGRAM.format(
        token=token,
        mark=MARK,
        value=mark,
        # With another user the text goes through a second shell; without, it is run where it stands.
        inner=f"inner={shlex.quote(inner)}" if switched else "",
        switch=_SWITCH.format(user=shlex.quote(command.user or "")) if switched else inner,
        feed=f"head -c {size} <&5 9>&- | LC_ALL=C dd ibs=65536 obs={BLOCK} 2>&9 9>&- 5<&- | " if size else "",
        source="" if size else "</dev/null ",
    )
    return text.encode("utf-8", "surrogateescape")


def _inner(command: Command) -> str:
    env = dict(command.env or {})
    exports = [f"export {name}={shlex.quote(value)}" for name, value in env.items() if _NAME.fullmatch(name)]
    # Names that a shell can't have go through `env`.
    odd = [shlex.quote(f"{name}={value}") for name, value in env.items() if not _NAME.fullmatch(name)]
    return _INNER.format(
        cwd=shlex.quote(command.cwd),
        path=_PATH,
        exports="\n".join(exports),
        words=" ".join(map(shlex.quote, command.words)),
        env=f"env {' '.join(odd)} " if odd else "",
    )
