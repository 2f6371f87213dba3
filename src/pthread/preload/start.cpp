// SPDX-License-Identifier: Apache-2.0
// The program's main() as the first thread of a runtime.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <string_view>

#include "base/with_threads.hpp"
#include "context/floating_point.hpp"
#include "context/program_locals.hpp"
#include "pthread/exit.hpp"
#include "pthread/preload/handlers.hpp"
#include "pthread/preload/native.hpp"
#include "pthread/preload/program_code.hpp"
#include "pthread/process_runtime.hpp"
#include "pthread/signals.hpp"
#include "sched/scheduler.hpp"
#include "strata/detail/root_task.hpp"

namespace {

using main_function = int (*)(int, char**, char**);

struct program {
  main_function main;
  int argc;
  char** argv;
  char** environment;
  // As its constructors left them.
  std::unique_ptr<std::byte[]> locals;
  strata::detail::floating_point floating_point;
} the_program;

// Programs that this one starts are not ours.
void forget_preload() {
  const char* const value = std::getenv("LD_PRELOAD");
  if (value == nullptr) return;
  constexpr std::string_view own = "libstrata_pthread.so";
  std::string rest;
  std::string_view all = value;
  while (!all.empty()) {
    const std::size_t end = std::min(all.find_first_of(": "), all.size());
    const std::string_view entry = all.substr(0, end);
    all.remove_prefix(std::min(end + 1, all.size()));
    if (entry.empty() || entry.ends_with(own)) continue;
    if (!rest.empty()) rest += ':';
    rest += entry;
  }
  if (rest.empty()) {
    unsetenv("LD_PRELOAD");
  } else {
    setenv("LD_PRELOAD", rest.c_str(), 1);
  }
}

void* call_main(void*) {
  strata::preload::let_handlers_interrupt_main();
  const int status = the_program.main(the_program.argc, the_program.argv, the_program.environment);
  std::exit(status);
}

// On a stack of the runtime. Noexcept: an exception that leaves main() ends the program where it
// was thrown.
void run_main() noexcept {
  using namespace strata::detail;
  using namespace strata::detail::posix;
  record& r = self();
  r.start = &call_main;
  r.is_main = true;
  // Release: with what was said of it just above. Partners: the loads of main_record.
  main_record.store(&r, std::memory_order_release);
  strata::preload::heed_handlers_set_before();
  // Constructors have run already, maybe on another OS thread.
  program_locals().load(the_program.locals.get());
  the_program.floating_point.put();
  if (program_locals().bytes() != 0) this_place().current->pinned_to = &this_place();
  run_to_exit(r);  // does not return: both ways out end the process
}

strata::detail::scheduler& runtime_of_program() {
  try {
    return *strata::with_threads("the runtime",
                                 [] { return &strata::detail::posix::process_runtime(); });
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "strata: cannot start the workers: %s\n", problem.what());
    std::_Exit(1);
  }
}

int main_in_runtime(int argc, char** argv, char** environment) {
  the_program.argc = argc;
  the_program.argv = argv;
  the_program.environment = environment;
  forget_preload();
  strata::detail::find_program_locals();
  strata::preload::find_program_code();
  const strata::detail::program_locals locals;
  the_program.locals.reset(new std::byte[locals.bytes()]);
  locals.save(the_program.locals.get());
  the_program.floating_point = strata::detail::floating_point::here();
  auto function = [] { run_main(); };
  strata::detail::root_call<decltype(function)> root(function);
  (void)runtime_of_program().enter(root);
  std::abort();  // it exits
}

}  // namespace

extern "C" [[gnu::visibility("default")]] int forward_libc_start_main(
    main_function main, int argc, char** argv, void (*init)(), void (*fini)(), void (*rtld_fini)(),
    void* stack_end) __asm__("__libc_start_main");

int forward_libc_start_main(main_function main, int argc, char** argv, void (*init)(),
                            void (*fini)(), void (*rtld_fini)(), void* stack_end) {
  using function = int (*)(main_function, int, char**, void (*)(), void (*)(), void (*)(), void*);
  const auto next = reinterpret_cast<function>(strata::preload::find_real("__libc_start_main"));
  the_program.main = main;
  return next(&main_in_runtime, argc, argv, init, fini, rtld_fini, stack_end);
}
