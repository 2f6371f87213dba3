// SPDX-License-Identifier: Apache-2.0
// libgomp, and what Go compiles, waits in the kernel by instructions of its own. A thread of ours
// that did so would stop its worker, and for ever where it waits for another thread of that worker,
// as at the end of a parallel region. So the threads that libgomp and libraries in Go make stay
// kernel threads, and all of a program in Go.
#pragma once
#include <link.h>
#include <pthread.h>

#include <string_view>

namespace strata::preload {

[[nodiscard]] bool is_libgomp(std::string_view path) noexcept;
[[nodiscard]] bool waits_by_itself(const dl_phdr_info& object) noexcept;

// pthread_create().
int create_thread(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                  void* argument);

}  // namespace strata::preload
