// SPDX-License-Identifier: Apache-2.0
// A shared library that is loaded when somebody asks for it, so that nothing that is installed
// depends on it.
#pragma once

namespace strata::os {

class loaded_library {
 public:
  struct description {
    const char* title;   // for people: "UCX"
    const char* file;    // what the dynamic linker looks for: "libucp.so.0"
    const char* remedy;  // what to do without it: "install it (Debian: libucx0) on every host"
  };

  // Loads it, or finds it loaded; from then on it stays until the process ends, since threads and
  // handlers of a library cannot be taken back. Throws strata::error, which ends with the remedy.
  explicit loaded_library(const description& wanted);

  // Sets `function` to the function of that name in the library, or in one that it depends on; it
  // must have that type. Throws strata::error when there is none.
  template <class Function>
  void find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(address_of(name));
  }

 private:
  [[nodiscard]] void* address_of(const char* name) const;

  const char* file_;
  void* handle_;
};

}  // namespace strata::os
