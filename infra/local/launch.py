"""Becomes another program that cannot outlive its parent: `python -S launch.py SIGNAL PARENT USER NICE -- argv`.

Runs as a script between fork and exec, so it imports next to nothing. Gives way by NICE, raises the limit of open
files, drops root for USER (`uid:gid` or `-`), asks the kernel for SIGNAL when PARENT dies (Linux), then executes the
program. The order matters: changing the user clears the request.
"""

import os
import resource
import sys


def die_with_parent(number: int, parent: int, user: str) -> None:
    """Drop root if asked, then tie this process to its parent. Elsewhere than on Linux it is not tied:
    leftovers are found by their mark at the next start."""
    if not sys.platform.startswith("linux"):
        become(user)
        return
    # Loaded before dropping root: the account may not be able to read this interpreter's library.
    import ctypes

    libc = ctypes.CDLL(None)
    become(user)
    pr_set_pdeathsig = 1
    libc.prctl(pr_set_pdeathsig, number)
    if os.getppid() != parent:
        sys.exit("the parent ended before this process was ready")


def raise_file_limit() -> None:
    """As many as the system allows, within reason: each open stream is a file, and many soft limits are 1,024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def become(user: str) -> None:
    if user == "-":
        return
    uid, gid = (int(part) for part in user.split(":"))
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)


if __name__ == "__main__":
    command = sys.argv[sys.argv.index("--") + 1 :]
    os.nice(int(sys.argv[4]))
    raise_file_limit()
    die_with_parent(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"cannot start {command[0]}: {error.strerror}")
