// SPDX-License-Identifier: Apache-2.0
// Waiting in the kernel without a worker: a kernel thread does it in the calling thread's place,
// and takes no signals.
#pragma once
#include "os/no_signals.hpp"
#include "strata/blocking.hpp"

namespace strata::preload {

// What f() returns, and its errno; no handler ends it. Where there is no kernel thread for it, the
// caller's worker stops.
template <class F>
auto elsewhere(const F& f) {
  auto without_signals = [&] {
    const os::no_signals here;
    return f();
  };
  detail::blocking_function<decltype(without_signals)> call(without_signals);
  call.takes_no_signals = true;
  detail::call_blocking(call);
  return call.out.take();
}

}  // namespace strata::preload
