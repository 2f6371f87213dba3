// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include "tests/common/require.hpp"

namespace strata::test {

// Stops this whole process. A shell lets it go on so many seconds after it has seen that it stands
// still: on a busy machine they may be over before.
inline void stand_still(int seconds) {
  const std::string me = std::to_string(::getpid());
  const std::string stands = "grep -q '^State:.*(stopped)' /proc/" + me + "/status";
  const std::string script = "(while kill -0 " + me + " && ! " + stands + "; do sleep 0.01; done" +
                             "; sleep " + std::to_string(seconds) + "; kill -CONT " + me +
                             ") > /dev/null 2>&1 &";
  require(std::system(script.c_str()) == 0, "will go on");
  ::kill(::getpid(), SIGSTOP);
}

}  // namespace strata::test
