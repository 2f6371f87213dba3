// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace bench {

// No runtime: what every other environment is compared with.
class serial_environment {
 public:
  explicit serial_environment(unsigned) {}
  template <class F>
  void run(F&& work) {
    work();
  }
};

}  // namespace bench
