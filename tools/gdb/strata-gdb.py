# SPDX-License-Identifier: Apache-2.0
"""Strata's threads in gdb, of a live process or of a core file.

  strata threads      what each of them does
  strata thread N     gdb looks at the stack of thread N, from frame 1 on; the process is not touched
  strata thread       back to the OS thread
  strata bt all       the backtrace of each

The library carries this script, and gdb loads it from there if it trusts the place:
  gdb -iex 'add-auto-load-safe-path /path/of/program' ...
Otherwise: (gdb) source .../share/strata/gdb/strata-gdb.py
"""
import re

import gdb
from gdb.unwinder import Unwinder, register_unwinder

LAYOUT_VERSION = 4
FIELDS = (
    "version pools pool_count first stride header_bytes colours colour_bytes cut "
    "sp bottom bytes kind thread waits_for waits_at waits_until number kind_name block_extras extras_name"
).split()
# What strata_switch_context leaves at the stack pointer it saves: registers by offset, and how far up the caller's is.
SAVED = {
    "x86-64": ({"r15": 0, "r14": 8, "r13": 16, "r12": 24, "rbx": 32, "rbp": 40, "rip": 48}, "rsp", 56),
    "aarch64": (dict([("x%d" % (19 + i), 8 * i) for i in range(11)] + [("pc", 88)]), "sp", 160),
}


def machine():
    name = gdb.newest_frame().architecture().name()
    return SAVED["aarch64" if "aarch64" in name else "x86-64"]


def memory(address, length):
    return bytes(gdb.selected_inferior().read_memory(address, length))


def word(address, length=8):
    return int.from_bytes(memory(address, length), "little")


def text(address, most=256):
    if address == 0:
        return ""
    found = b""
    try:
        while len(found) < most and b"\0" not in found:
            found += memory(address + len(found), 16)
    except gdb.MemoryError:
        pass
    return found.split(b"\0")[0].decode(errors="replace")


def layout():
    try:
        address = int(gdb.parse_and_eval("(unsigned long)&strata_debugger_layout"))
        values = [word(address + 8 * i) for i in range(len(FIELDS))]
    except gdb.error:
        raise gdb.GdbError("strata: this program has no Strata in it, or has not begun") from None
    if values[0] != LAYOUT_VERSION:
        raise gdb.GdbError("strata: the program's Strata and this script are of different versions")
    return dict(zip(FIELDS, values))


def function_name(address):
    """'main()::<lambda()>' for the address of type_name<main()::<lambda()>>(), 'pthread' for that of kind_pthread()."""
    symbol = gdb.execute("info symbol 0x%x" % address, to_string=True).strip().split(" in section")[0]
    if "type_name<" not in symbol:
        kind = re.search(r"\bkind_(\w+)\(\)", symbol)
        return kind.group(1).replace("_", " ") if kind else symbol.replace("strata::detail::", "")
    inner = symbol[symbol.index("type_name<") + len("type_name<"):]
    return inner[: inner.rindex(">(")] if ">(" in inner else inner


class Thread:
    def __init__(self, at, where):
        self.where = where
        self.number = word(where + at["number"], 4)
        self.sp = word(where + at["sp"])
        self.bottom = word(where + at["bottom"])
        self.top = self.bottom + word(where + at["bytes"])
        self.waits_for = text(word(where + at["waits_for"]), 64)
        self.waits_at = word(where + at["waits_at"])
        self.is_woken = self.was_decided(at)
        self.runner = None
        self.name = self.its_name(at)

    def its_name(self, at):
        try:
            block = word(self.where + at["thread"])
            extras = word(block + at["block_extras"]) if block else 0
            if extras:
                # libstdc++'s string: where it is, how long it is.
                name = extras + at["extras_name"]
                length = word(name + 8)
                if 0 < length < 4096:
                    return memory(word(name), length).decode(errors="replace")
        except gdb.MemoryError:
            pass
        kind = word(self.where + at["kind"])
        return function_name(word(kind + at["kind_name"]))

    def was_decided(self, at):
        """Somebody has ended its wait, and it has not gone on yet."""
        until = word(self.where + at["waits_until"])
        try:
            return until != 0 and word(until, 4) != 0
        except gdb.MemoryError:
            return False

    def state(self):
        if self.runner is not None:
            return "running on OS thread %d" % self.runner
        if not self.waits_for or self.is_woken:
            return "ready"
        return "waits for " + self.waits_for + (" at 0x%x" % self.waits_at if self.waits_at else "")

    def title(self):
        return 'thread %d "%s": %s' % (self.number, self.name, self.state())


def all_threads():
    if not gdb.selected_inferior().threads():
        raise gdb.GdbError("strata: there is no process to look at")
    at = layout()
    chosen = gdb.selected_thread()
    frame = gdb.selected_frame() if chosen else None
    stack_pointers = {}
    for t in gdb.selected_inferior().threads():
        if t.is_valid() and t.is_stopped():
            t.switch()
            stack_pointers[t.num] = int(gdb.newest_frame().read_register(machine()[1])) & (2**64 - 1)
    if chosen:
        chosen.switch()
        if frame is not None and frame.is_valid():
            frame.select()
    found = []
    for i in range(at["pool_count"]):
        pool = word(at["pools"] + 8 * i)
        if pool == 0:
            continue
        first, stride = word(pool + at["first"]), word(pool + at["stride"])
        for j in range(word(pool + at["cut"])):
            header = first + (j + 1) * stride - at["header_bytes"] - j % at["colours"] * at["colour_bytes"]
            if word(header + at["kind"]) == 0:
                continue  # in the pool
            t = Thread(at, header)
            for number, sp in stack_pointers.items():
                if t.bottom <= sp < t.top:
                    t.runner = number
            found.append(t)
    return sorted(found, key=lambda t: t.number)


class FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = gdb.Value(sp), gdb.Value(pc)


class SuspendedStack(Unwinder):
    """While a thread is chosen, the frame above the innermost is where that thread left its stack."""

    def __init__(self):
        super().__init__("strata")
        self.thread = None
        self.os_thread = None

    def __call__(self, pending):
        if self.thread is None or pending.level() != 0 or gdb.selected_thread() is None:
            return None
        if gdb.selected_thread().num != self.os_thread:
            return None
        registers, sp_name, above = SAVED["aarch64" if "aarch64" in pending.architecture().name() else "x86-64"]
        sp = self.thread.sp
        type_of_sp = gdb.lookup_type("unsigned long")
        # Below everything that follows: gdb takes stacks that go the other way for broken.
        info = pending.create_unwind_info(FrameId(sp - 16, word(sp + registers.get("rip", registers.get("pc")))))
        for name, offset in registers.items():
            info.add_saved_register(name, gdb.Value(word(sp + offset)).cast(type_of_sp))
        info.add_saved_register(sp_name, gdb.Value(sp + above).cast(type_of_sp))
        return info

    def choose(self, thread):
        self.thread = thread
        self.os_thread = gdb.selected_thread().num if thread else None
        gdb.invalidate_cached_frames()


SUSPENDED = SuspendedStack()
register_unwinder(None, SUSPENDED, replace=True)


def forget(_event):
    SUSPENDED.thread = None


gdb.events.cont.connect(forget)
gdb.events.exited.connect(forget)


def backtrace():
    """Without the frame that belongs to the OS thread."""
    lines = gdb.execute("bt", to_string=True).splitlines()
    return "\n".join(l for l in lines if not l.startswith("#0 "))


class Strata(gdb.Command):
    """Strata's threads: strata threads | strata thread [N] | strata bt all"""

    def __init__(self):
        super().__init__("strata", gdb.COMMAND_STACK, gdb.COMPLETE_NONE, True)


class Threads(gdb.Command):
    """Lists the threads of all Strata runtimes, with what they do."""

    def __init__(self):
        super().__init__("strata threads", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        SUSPENDED.choose(None)
        found = all_threads()
        for t in found:
            print(t.title())
        if not found:
            print("strata: no threads")


class OneThread(gdb.Command):
    """strata thread N: looks at thread N's stack (frame 1 and up). Without N: back to the OS thread."""

    def __init__(self):
        super().__init__("strata thread", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        SUSPENDED.choose(None)
        if not argument.strip():
            return
        wanted = [t for t in all_threads() if str(t.number) == argument.strip()]
        if not wanted:
            raise gdb.GdbError("strata: there is no thread %s; 'strata threads' lists them" % argument)
        print(wanted[0].title())
        if wanted[0].runner is not None:
            gdb.execute("thread %d" % wanted[0].runner)
            return
        SUSPENDED.choose(wanted[0])
        gdb.execute("frame 1")


class Backtraces(gdb.Command):
    """strata bt all: the backtrace of every thread."""

    def __init__(self):
        super().__init__("strata bt", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        if argument.strip() != "all":
            raise gdb.GdbError("strata bt all; of one thread: strata thread N, then bt")
        SUSPENDED.choose(None)
        chosen = gdb.selected_thread()
        for t in all_threads():
            print(t.title())
            if t.runner is None:
                SUSPENDED.choose(t)
                print(backtrace())
            else:
                SUSPENDED.choose(None)
                gdb.execute("thread apply %d -q bt" % t.runner)
            print()
        SUSPENDED.choose(None)
        chosen.switch()


Strata()
Threads()
OneThread()
Backtraces()
