"""A system call filter: no sockets, no new processes, no signals or tracing of others, no kernel extras.

A list of what is refused rather than of what is allowed: the libraries inside change with their versions, and
what protects neighbours is that these few doors are shut. Refused calls fail with EPERM, so that a library
which merely tries one goes on. Written as classic BPF by hand; x86-64 and aarch64.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_CLONE_THREAD = 0x00010000

_LOAD, _JUMP_EQ, _JUMP_GE, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NR, _ARCH, _ARG0 = (
    0,
    4,
    16,
)  # offsets in struct seccomp_data; arguments are little-endian 64-bit
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_ERRNO = 0x00050000

_ARCHES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_BIT = 0x40000000

# name -> (x86-64, aarch64); None where the architecture has no such call.
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    "socket": (41, 198), "connect": (42, 203), "accept": (43, 202), "bind": (49, 200), "listen": (50, 201),
    "socketpair": (53, 199), "accept4": (288, 242),
    "fork": (57, None), "vfork": (58, None),
    "setpgid": (109, 154), "setsid": (112, 157),
    "kill": (62, 129), "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "setpriority": (141, 140), "ioprio_set": (251, 30),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsmount": (432, 432),
    "mount_setattr": (442, 442), "unshare": (272, 97), "setns": (308, 268),
    "mknod": (133, None), "mknodat": (259, 33), "open_by_handle_at": (304, 265),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "kexec_load": (246, 104), "reboot": (169, 142), "swapon": (167, 224), "personality": (135, 92),
}  # fmt: skip
_EXEC: dict[str, tuple[int | None, int | None]] = {
    "execve": (59, 221),
    "execveat": (322, 281),
}
_CLONE, _CLONE3, _TGKILL, _PRLIMIT = (56, 220), (435, 435), (234, 131), (302, 261)


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _refuse(number: int, error: int = errno.EPERM) -> bytes:
    return _op(_JUMP_EQ, number, 0, 1) + _op(_RETURN, _ERRNO | error)


def _when_argument(number: int, test: bytes) -> bytes:
    """For call `number`, `test` (one jump over the refusal) decides on the low half of its first argument."""
    return (
        _op(_JUMP_EQ, number, 0, 4)
        + _op(_LOAD, _ARG0)
        + test
        + _op(_RETURN, _ERRNO | errno.EPERM)
        + _op(_RETURN, _ALLOW)
    )


def _filter(machine: str, *, may_exec: bool) -> bytes:
    column = 0 if machine == "x86_64" else 1
    # Another architecture's call numbers would pass unread.
    program = _op(_LOAD, _ARCH) + _op(_JUMP_EQ, _ARCHES[machine], 1, 0) + _op(_RETURN, _KILL) + _op(_LOAD, _NR)
    if machine == "x86_64":
        program += _op(_JUMP_GE, _X32_BIT, 0, 1) + _op(_RETURN, _ERRNO | errno.EPERM)
    calls = _REFUSED if may_exec else _REFUSED | _EXEC
    for numbers in calls.values():
        number = numbers[column]
        if number is not None:
            program += _refuse(number)
    # Its arguments are behind a pointer a filter cannot read; libc falls back to clone.
    program += _refuse(_CLONE3[column], errno.ENOSYS)
    program += _when_argument(_CLONE[column], _op(_JUMP_SET, _CLONE_THREAD, 1, 0))
    program += _when_argument(_TGKILL[column], _op(_JUMP_EQ, os.getpid(), 1, 0))  # abort() may end itself
    program += _when_argument(_PRLIMIT[column], _op(_JUMP_EQ, 0, 1, 0))  # its own limits only
    return program + _op(_RETURN, _ALLOW)


def restrict(libc: ctypes.CDLL, *, may_exec: bool) -> bool:
    """Install the filter for all that this process does from here on, exec included. Needs no_new_privs."""
    machine = os.uname().machine
    if machine not in _ARCHES:
        return False
    code = _filter(machine, may_exec=may_exec)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    return bool(libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0) == 0)
