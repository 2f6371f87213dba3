// SPDX-License-Identifier: Apache-2.0
// An exception that leaves what runs on a stack ends the program, and is named. The unwinder looks
// for a handler before it leaves any frame; where all stacks begin, it asks us. So the program ends
// where the exception was thrown, with all frames that led there, as that of a kernel thread does:
// a catch (...), and in part noexcept, would have left them by then.
#include <cxxabi.h>
#include <unwind.h>

#include <cstdio>
#include <exception>
#include <string>

#include "base/spelling.hpp"
#include "context/stack.hpp"

namespace strata::detail {
namespace {

// The register that strata_context_begin has its stack in (switch_x86_64.cpp, switch_aarch64.cpp),
// as the unwinder counts.
#if defined(__x86_64__)
constexpr int stack_register = 13;  // r13
#else
constexpr int stack_register = 20;  // x20
#endif

[[noreturn]] void end_program(const stack& s, _Unwind_Exception* exception) noexcept {
  std::fprintf(stderr, "strata: an exception left %s %s\n", s.thread != nullptr ? "thread" : "task",
               s.title != nullptr ? s.title : std::string(plain_name(s.kind->name())).c_str());
  abi::__cxa_begin_catch(exception);  // for those who say what it was
  std::terminate();
}

}  // namespace
}  // namespace strata::detail

// The "personality" of strata_context_begin, which only that refers to. See the Itanium C++ ABI,
// "Exception handling", 1.3.
extern "C" [[gnu::used, gnu::visibility("hidden")]] _Unwind_Reason_Code strata_last_frame(
    int, _Unwind_Action actions, _Unwind_Exception_Class, _Unwind_Exception* exception,
    _Unwind_Context* context) {
  // Who unwinds by force knows where to stop.
  if ((actions & _UA_SEARCH_PHASE) == 0) return _URC_CONTINUE_UNWIND;
  using namespace strata::detail;
  end_program(*reinterpret_cast<const stack*>(_Unwind_GetGR(context, stack_register)), exception);
}
