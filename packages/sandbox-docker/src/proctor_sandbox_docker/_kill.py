"""How the processes of one command are ended inside of a container, and no others.

The engine can't do that: its API knows commands, not processes. So a script looks for them in the container: those
that have the command's mark in their environment, the descendants of these, and whoever shares a session with one.
One in the middle of execve(2) has memory but tells no environment yet: then it looks again.
It runs in the shell alone, since a container that may start no more processes would not start a `grep`.
"""

from __future__ import annotations

__all__ = ["KILL_SCRIPT", "MARK"]

MARK = "PROCTOR_EXEC"
"""The variable that marks the processes of a command."""

# $1: the mark, MARK=value. Further arguments: processes to begin with. It prints those that it could not end.
KILL_SCRIPT = r"""
mark=$1; shift
seeds=" $* "
round=0
while [ $round -lt 40 ]; do
  round=$((round + 1))
  pids= sessions=' ' found= starting=
  for folder in /proc/[0-9]*; do
    pid=${folder#/proc/}
    [ "$pid" != $$ ] || continue
    { IFS= read -r line < "$folder/stat"; } 2>/dev/null || continue
    set -f; set -- ${line##*) }; set +f
    [ "$1" != Z ] && [ "$1" != X ] || continue
    parent=$2 session=$4 memory=${21} environment=${49} hit= told=1
    case $seeds in *" $pid "*) hit=1 ;; esac
    if [ -z "$hit" ]; then
      { { told=
          while IFS= read -r line || [ -n "$line" ]; do
            told=1
            case $line in *"$mark"*) hit=1; break ;; esac
          done
        } < "$folder/environ"; } 2>/dev/null
      [ -n "$told" ] || [ "$memory" = 0 ] || [ "$environment" != 0 ] || starting=1
    fi
    pids="$pids $pid:$parent:$session"
    if [ -n "$hit" ]; then
      found="$found $pid "
      [ "$session" = 0 ] || sessions="$sessions$session "
    fi
  done
  [ -n "$found$starting" ] || exit 0
  more=1
  while [ -n "$more" ]; do
    more=
    for each in $pids; do
      pid=${each%%:*} rest=${each#*:}
      parent=${rest%%:*} session=${rest#*:}
      case $found in *" $pid "*) continue ;; esac
      hit=
      case $found in *" $parent "*) hit=1 ;; esac
      case $sessions in *" $session "*) hit=1 ;; esac
      [ -z "$hit" ] || { found="$found $pid "; more=1; }
    done
  done
  for pid in $found; do [ "$pid" = 1 ] || kill -KILL "$pid" 2>/dev/null; done
  seeds=
done
[ -n "$found" ] || exit 0
printf '%s\n' "$found"
exit 9
"""
