// SPDX-License-Identifier: Apache-2.0
// A UCP context with one worker: what is opened once and closed at the end. Calls of the worker are
// made by one thread at a time; who uses it sees to that.
#pragma once
#include <string>

#include "net/ucx/ucp_library.hpp"

namespace strata::net::ucx {

class worker {
 public:
  // Opened on these devices, unless the user has named others in UCX_NET_DEVICES; empty: on those
  // that UCX chooses. Connecting blocks for as long as the system tries, minutes perhaps, unless
  // `some_unreachable`. Throws strata::error.
  explicit worker(const std::string& devices, bool some_unreachable = false);
  ~worker();
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;

  // What others connect to. Opaque.
  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  // Readable when progress() has something to do; arm() first.
  [[nodiscard]] int event_descriptor() const noexcept { return events_; }
  // False: there is something to do already.
  [[nodiscard]] bool arm();
  // True: something was done.
  bool progress() { return ucp_.ucp_worker_progress(handle_) != 0; }

  [[nodiscard]] ucp_worker_h handle() const noexcept { return handle_; }
  [[nodiscard]] ucp_context_h context() const noexcept { return context_; }

 private:
  void close() noexcept;
  [[noreturn]] void fail(const char* what, ucs_status_t why);

  const ucp_library& ucp_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h handle_ = nullptr;
  std::string address_;
  int events_ = -1;
};

}  // namespace strata::net::ucx
