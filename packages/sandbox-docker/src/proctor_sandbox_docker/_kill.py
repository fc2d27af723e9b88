"""How the processes of one command are found inside of a container: to end them, and no others, or to look at them.

The engine can't do that: its API knows commands, not processes. So a script looks for them in the container: those
that have the command's mark in their environment, the descendants of these, and whoever shares a session with one.
One in the middle of execve(2) has memory but tells no environment yet: then it looks again.
It runs in the shell alone, since a container that may start no more processes would not start a `grep`.
"""

from __future__ import annotations

__all__ = ["HEARD_SCRIPT", "KILL_SCRIPT", "MARK", "UNHEARD"]

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

UNHEARD = 7
"""What ``HEARD_SCRIPT`` returns where there is more to come of a command whose streams have ended."""

# $1: the mark. The command itself is the one whose parent is outside of the container: its streams end when it closes
# them. Has it not, and they have ended, then what carried them is broken.
HEARD_SCRIPT = rf"""
mark=$1
for folder in /proc/[0-9]*; do
  {{ IFS= read -r line < "$folder/stat"; }} 2>/dev/null || continue
  set -f; set -- ${{line##*) }}; set +f
  [ "$2" = 0 ] || continue
  hit=
  {{ while IFS= read -r line || [ -n "$line" ]; do
      case $line in *"$mark"*) hit=1; break ;; esac
    done < "$folder/environ"; }} 2>/dev/null
  [ -n "$hit" ] || continue
  if [ -p "$folder/fd/1" ] || [ -p "$folder/fd/2" ]; then exit {UNHEARD}; fi
done
exit 0
"""
