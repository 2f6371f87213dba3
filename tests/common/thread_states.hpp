// SPDX-License-Identifier: Apache-2.0
// What a thread with a name is doing, from strata::threads_text(): tests wait for a state instead
// of hoping that it is reached in time.
#pragma once
#include <string>

#include "strata/dump_threads.hpp"
#include "strata/thread.hpp"

namespace strata::test {

// The paragraph of the thread with this name.
inline std::string paragraph(const std::string& text, const std::string& name) {
  const auto begin = text.find("\"" + name + "\"");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find("\nthread ", begin) - begin);
}

// Whether `name` is said to be `state` now.
inline bool is_now(const std::string& name, const std::string& state) {
  return paragraph(threads_text(), name).find(state) != std::string::npos;
}

// The text once `name` is said to be `state`. Called by a thread of a runtime.
inline std::string text_when(const std::string& name, const std::string& state) {
  for (;;) {
    std::string text = threads_text();
    if (paragraph(text, name).find(state) != std::string::npos) return text;
    this_thread::yield();
  }
}

}  // namespace strata::test
