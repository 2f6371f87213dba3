// SPDX-License-Identifier: Apache-2.0
// A file of memory alone (memfd), which processes share or one maps twice.
#pragma once
#include <cstddef>
#include <string>

namespace strata::os {

/// Makes the file `bytes` long; what it gains are zeros, and takes no memory until touched. Throws
/// strata::error, which begins with `what` and ends with `remedy`, when the system refuses,
/// strata::user_error when the limit of file sizes does (ulimit -f): that holds for memory too, and
/// the kernel ends who passes it by SIGXFSZ, so it is asked first.
void resize_memory_file(int fd, std::size_t bytes, const std::string& what,
                        const std::string& remedy = {});

/// Maps all of it, shared, to be read and written. Throws as resize_memory_file(); the limit is
/// that of addresses (ulimit -v).
void* map_memory_file(int fd, std::size_t bytes, const std::string& what,
                      const std::string& remedy = {});

}  // namespace strata::os
