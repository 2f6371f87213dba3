// SPDX-License-Identifier: Apache-2.0
// Threads by the hundred thousand: the standard's thread library, at the cost of a task.
//
//   rt.run([] {
//     strata::mutex m;
//     std::vector<strata::thread> threads;
//     for (int i = 0; i < 100'000; ++i) threads.emplace_back([&] { std::lock_guard lock(m); ... });
//     for (auto& t : threads) t.join();
//   });
//
// A thread is a task with a stack, on the same workers as fibers and fork-join tasks. When it
// blocks, its stack is set aside and the worker goes on. It may continue on another OS thread after
// everything that can block, so do not keep the address of a thread_local across that; use
// thread_specific_ptr.
//
// Everything here may be used within strata::runtime::run() and by OS threads outside a runtime,
// which block where a thread would be suspended. Fibers may do what does not block; waking somebody
// does not.
//
// A program needs no runtime of its own for threads. Those that are made outside any (from a plain
// main(), also by jthread and async) run in one that the process has for them. The first of them
// starts it, with the settings in STRATA_* variables, and stacks as large as `ulimit -s` says (8
// MiB where that sets no limit) unless those say otherwise. Where they do not, threads for which
// there is none of that size any more have smaller ones: 8 MiB, 1 MiB, and then 256 KiB. It lives
// as long as the process. Wrong settings end the program with status 2. Where workers cannot be
// started the first thread is refused (resource_unavailable_try_again), and the next one tries
// again.
//
// Signals belong to OS threads. A thread has blocked what its worker has, and so have programs that
// it starts: what the OS thread had that made the runtime or, without one, the first thread. Block
// before that what no thread may get; pthread_sigmask() in a thread changes its worker's mask, not
// the thread's. A handler may interrupt a worker anywhere, in the middle of a call of this library
// too: from handlers, call nothing of it.
//
// This header has all of it; each part can also be had alone, as the headers that follow. thread
// and this_thread::* are documented in detail/thread_core.hpp, thread_attributes in
// detail/thread_block.hpp.
#pragma once
// IWYU pragma: begin_exports
#include "strata/condition_variable.hpp"
#include "strata/detail/thread_core.hpp"
#include "strata/future.hpp"
#include "strata/jthread.hpp"
#include "strata/mutex.hpp"
#include "strata/semaphore.hpp"
#include "strata/stop_token.hpp"
#include "strata/thread_specific.hpp"
// IWYU pragma: end_exports
