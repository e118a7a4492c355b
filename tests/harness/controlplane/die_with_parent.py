"""Run a command that the kernel kills when the parent dies, however it dies (Linux).

A program of its own, executed between fork and the command, because Python code between
fork and exec is unsafe in a program with threads. Arguments: the parent's pid, the command.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1

if __name__ == "__main__":
    parent, *command = sys.argv[1:]
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # The parent may have died before the call above: then nobody sends the signal any more.
    if os.getppid() != int(parent):
        sys.exit(1)
    os.execv(command[0], command)
