"""File access by Landlock (Linux 5.13 and later): an allow-list of what may be read and one folder for scratch.

Needs no privilege. Kernels without it leave files as they are, which the caller reports.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = (
    444,
    445,
    446,
)  # the same numbers on every architecture
_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_REMOVE_FILE, _MAKE_REG, _TRUNCATE = 1 << 5, 1 << 8, 1 << 14
_TCP = 0b11  # bind and connect
_SCOPED = 0b11  # abstract unix sockets and signals to others

# How many file rights, and whether network and scopes, exist at each version of the interface.
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}


def _version(libc: ctypes.CDLL) -> int:
    return int(libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_RULESET_VERSION)))


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # not on this system, so nothing to allow
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
        rule = struct.pack("=Qi", rights, descriptor)
        libc.syscall(
            _ADD_RULE,
            ctypes.c_int(ruleset),
            ctypes.c_int(_RULE_PATH_BENEATH),
            rule,
            ctypes.c_uint32(0),
        )
    finally:
        os.close(descriptor)


def restrict(libc: ctypes.CDLL, *, readable: tuple[str, ...], writable: str) -> tuple[bool, bool]:
    """Returns whether file access is restricted, and whether TCP is refused."""
    version = _version(libc)
    if version < 1:
        return False, False
    known = (1 << _FILE_RIGHTS.get(version, 16)) - 1
    attributes = struct.pack("=QQQ", known, _TCP if version >= 4 else 0, _SCOPED if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = int(libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(size), ctypes.c_uint32(0)))
    if ruleset < 0:
        return False, False
    try:
        for path in readable:
            _allow(libc, ruleset, path, _EXECUTE | _READ_FILE | _READ_DIR)
        scratch = _READ_FILE | _READ_DIR | _WRITE_FILE | _REMOVE_FILE | _MAKE_REG | _TRUNCATE
        _allow(libc, ruleset, writable, scratch & known)
        _allow(libc, ruleset, "/dev/null", _READ_FILE | _WRITE_FILE)
        held = libc.syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0)) == 0
    finally:
        os.close(ruleset)
    return held, held and version >= 4
