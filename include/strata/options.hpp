// SPDX-License-Identifier: Apache-2.0
// How a runtime is to be started, and where a program's user says so.
#pragma once

#include <cstddef>
#include <string>

namespace strata {

/// The settings of one runtime. Fill it in by hand, or let it be read from what the user wrote:
///
///   int main(int argc, char** argv) {
///     strata::options settings = strata::options::parse_or_exit(argc, argv);
///     // --strata-* are gone from argv now
///     settings.workers = 2;
///     strata::runtime runtime(settings);
///   }
///
/// Where nothing comes in between, `strata::runtime runtime(argc, argv);` is all of that.
///
/// Each setting has one name in three spellings: flag `--strata-stack-bytes 1M` (or
/// `--strata-stack-bytes=1M`), variable `STRATA_STACK_BYTES=1M`, line `stack-bytes = 1M` of a
/// configuration file. Flag beats variable beats file beats default.
struct options {
  /// Worker threads, 1 to 4096. 0, the default: as many as the affinity mask and the cgroup's CPU
  /// quota allow.
  unsigned workers = 0;
  /// Bytes of each task's stack, 16 KiB to 1 GiB, rounded up to pages. Only pages that are touched
  /// cost memory.
  std::size_t stack_bytes = 256 * 1024;
  /// Bind each worker to one CPU. Runtimes of one process have CPUs of their own as long as there
  /// are some; a runtime for which too few are left is not bound. Of several processes each binds
  /// to the first that it may use, unless a launcher has given it some: processes with fewer
  /// workers than CPUs that run at the same time say no here, or are given CPUs (`taskset`).
  bool bind = true;
  /// Print where the workers' time went, and counts of tasks and steals, when the runtime stops.
  bool stats = false;
  /// Measure work and span (T1 and T_inf) of what is run, and print those of the last
  /// runtime::run() on stderr when the runtime stops; costs time at every fork. Forks and scopes
  /// leave no call to other nodes meanwhile: what is measured is one program on one node.
  bool profile = false;
  /// Microseconds that an idle worker searches for work before it sleeps, 0 to 1,000,000. That is
  /// how it begins; it learns from how long it has had to wait before, and searches for up to four
  /// times as long where that mostly catches the next work, or an eighth where work is rare or
  /// others wait for its core.
  unsigned spin_us = 50;
  /// How ready threads and fibers are distributed over workers. "steal": idle workers take half of
  /// what another has; "rotator": each waives what exceeds its share to its successor, without
  /// locks; "locked": each waives it to whoever has room, under a lock. These are Lesser Bear's LB2
  /// and LB1 (docs/architecture.md#sources).
  /// Branches of forks and tokens are always stolen.
  std::string policy = "steal";
  /// Microseconds after which a thread made with thread_attributes::preemptible gives way to others
  /// that wait for its worker, 100 to 10,000,000.
  unsigned preempt_us = 10'000;
  /// The number of this node in a job of several, 0 to 65,535: the launcher's to say.
  unsigned node = 0;
  /// Whether the first runtime of a process that the site's tools have started (`srun --mpi=pmix`,
  /// Open MPI's `mpirun`) joins the job that they make: "auto": where PMIx's variables say that
  /// there is one, "none": the process stays alone, "pmix": it must. Empty: what the variable
  /// STRATA_LAUNCH says, also to a program that parses no options, and "auto" without it. A job of
  /// `strata run` has precedence.
  std::string launch{};
  /// In a job of the site's tools, how nodes talk: all by "shm", "tcp", "ucx" or "udp"; or through
  /// shared memory within a host, where it can be had, and by another transport between hosts:
  /// "shm+tcp", which "auto" stands for, "shm+ucx" or "shm+udp". Node 0's word counts. (Under
  /// `strata run` its flag `--transport` decides.)
  std::string transport = "auto";
  /// In a job of the site's tools, where this node listens: an address of this host, a network such
  /// as "10.1.0.0/16", or a network interface. Empty: loopback in a job of one host, else the
  /// address that the host's name has, or that of the first interface.
  std::string bind_address{};
  /// In a job of the site's tools, seconds until all nodes must have joined, 1 to 86,400.
  unsigned start_limit_s = 30;
  /// How a node of several notices messages while its workers are busy (idle ones look themselves).
  /// "blocking": a receiver thread sleeps until there are some, so they are handled at once,
  /// whatever the workers do. "polling": workers look between two tasks, which is faster where
  /// tasks are short, and deaf where one is long. "watchdog": the same, and a thread looks when
  /// nobody has for watchdog_us. "adaptive": blocking, and polling while messages come in close
  /// succession and workers look often enough (every 200 us).
  std::string reception = "adaptive";
  /// See reception; 10 to 10,000,000 microseconds.
  unsigned watchdog_us = 1000;
  /// Microseconds that a receiver thread looks for more messages before it sleeps, 0 to 1,000,000.
  unsigned receiver_spin_us = 0;
  /// Who gets whose tokens: "random" (idle nodes ask others at random), "sender" (busy ones send
  /// unasked), "informed" (idle ones ask who had most).
  std::string balancing = "random";
  /// How many tokens a node keeps ready for the other nodes of its host to take without its help,
  /// where they share memory and with balancing other than "sender"; 0 to 8, 0: none.
  unsigned shelf = 8;
  /// Milliseconds of silence after which a node counts as lost, 100 to 3,600,000. One whose process
  /// ends or whose connection closes is lost at once.
  unsigned lost_after_ms = 30'000;
  /// Seconds without progress on any node, while tasks or threads wait for each other, after which
  /// node 0, or the one process that there is, prints who waits for what on every node; 0 to
  /// 86,400, 0: never. When one of them, or the launcher, gets the signal SIGQUIT, every node
  /// prints its own.
  unsigned stall_s = 60;
  /// Networks that the nodes of a job use between hosts, as prefixes separated by commas
  /// ("10.1.0.0/16,10.2.0.0/16"): each node listens on its interface of each that it is on, two
  /// nodes talk over the cheapest that they share by their kinds and the interfaces' speeds (the
  /// first of equal ones), and nodes that share none by others. "tcp:", "udp:" or "ucx:" before one
  /// is its kind; else it is what the job has between hosts. "auto": those that the nodes find when
  /// a job of several hosts begins. Empty: the one on which the launcher reaches them. The same on
  /// all nodes.
  std::string networks{};
  /// Where these are several: seconds from one measuring of what they cost to the next, and so
  /// until messages may take other ways; 0 to 86,400, 0: only once, when the job begins. That of
  /// node 0 counts.
  unsigned remeasure_s = 30;
  /// Bytes of each TCP socket's buffers, 4 KiB to 64 MiB; 0: the system's choice.
  std::size_t socket_bytes = 0;
  /// How sockets are written: "non-blocking" by whoever sends, or "blocking" by the sender thread.
  std::string socket_io = "non-blocking";
  /// How the receiver learns which sockets have something: "automatic", "recv", "epoll", "poll" or
  /// "select".
  std::string socket_poll = "automatic";
  /// Which large messages over UCX go by rendezvous, from one node's memory into the other's:
  /// "auto", those between nodes whose memory UCX's devices read or write; "always", over sockets
  /// too, where it saves copies and takes longer; "never": all go in pieces.
  std::string rendezvous = "auto";
  /// A signal on which the program prints on stderr what all its threads do: "none", "QUIT",
  /// "USR1", "USR2" or "HUP". See strata/dump_threads.hpp.
  std::string dump_signal = "none";
  /// Watch who holds and who waits for each strata mutex, and end the program with status 1 when
  /// some wait for each other in a circle, saying who. Costs time at every lock.
  bool detect_deadlock = false;
  /// Print on stderr at the start how many workers there are, why, and on which CPUs.
  bool print_binding = false;

  /// Reads the configuration file (named by --strata-config or STRATA_CONFIG), the STRATA_*
  /// variables and the --strata-* flags, and removes the flags from argv (argc shrinks, argv[argc]
  /// stays null). Everything else, and everything after a literal `--`, is left alone.
  /// `--strata-help` prints the table of settings on stdout and ends the process with status 0. A
  /// variable that starts with STRATA_ and is no setting is reported in one line on stderr; one
  /// that is empty counts as not set, and so do all in a program with rights of its own
  /// (set-user-ID). Throws user_error, with where and what, for an unknown flag
  /// or key, a bad value or an unreadable file; argv is then unchanged. Not to be called while
  /// another thread changes the environment.
  static options parse(int& argc, char** argv);

  /// The same for main(): what the user has to put right ends the process, by std::exit(2), and one
  /// line on stderr says it, "program: what, where, what to do"; in a job node 0 alone writes it.
  static options parse_or_exit(int& argc, char** argv);

  /// Throws misuse_error when a program filled in a value outside the ranges above. A runtime calls
  /// it when it starts.
  void validate() const;
};

}  // namespace strata
