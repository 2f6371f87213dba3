// SPDX-License-Identifier: Apache-2.0
// The number that STRATA_JOB_FD holds stands for a line only where it is that of a socket, and the
// line is that of one program: of the first one that takes it.
#pragma once
#include <string>

namespace strata::launch {

// The socket that the variable's text names. Throws user_error where it names none.
int socket_named(const std::string& text);

// Before anything is read there. Throws user_error if another program has done so, before us or
// beside us: what that has read never comes again, and we would wait for it for ever.
void take_line(int fd);

}  // namespace strata::launch
