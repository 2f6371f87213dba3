// SPDX-License-Identifier: Apache-2.0
// Relacy without its macros. Its own umbrella, relacy/relacy.hpp, redefines `new`, `assert`,
// `memory_order_relaxed` and half the threads API for the rest of the translation unit, and the
// code under test is to compile as it is. Include this before anything else.
#pragma once
// Relacy checks itself: a model that behaves differently when it is run again is reported.
#define RL_DO_ASSERT 1

// clang-format off: the order is Relacy's own.
#include <relacy/atomic.hpp>
#include <relacy/atomic_fence.hpp>
#include <relacy/backoff.hpp>
#include <relacy/base.hpp>
#include <relacy/context.hpp>
#include <relacy/context_base_impl.hpp>
#include <relacy/dyn_thread.hpp>
#include <relacy/stdlib/condition_variable.hpp>
#include <relacy/stdlib/event.hpp>
#include <relacy/stdlib/mutex.hpp>
#include <relacy/stdlib/semaphore.hpp>
#include <relacy/test_suite.hpp>
#include <relacy/thread_local.hpp>
#include <relacy/var.hpp>
// clang-format on

#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdollar-in-identifier-extension"
#endif
#undef $
#if defined(__clang__)
#pragma clang diagnostic pop
#endif
#undef TlsAlloc
#undef TlsFree
#undef TlsGetValue
#undef TlsSetValue
