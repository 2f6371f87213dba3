// SPDX-License-Identifier: Apache-2.0
// Nothing that is shown here is locked, and stacks go on while they are looked at. So all of it is
// copied by the kernel (os::safe_read), which answers where we would crash; a stack is copied
// twice, and what it was doing is believed when both copies are the same and no worker ran it
// before or after. Only a worker that runs one is stopped, for as long as that takes to be copied.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/spelling.hpp"
#include "context/stopped.hpp"
#include "context/switch.hpp"
#include "context/unwind.hpp"
#include "os/own_thread.hpp"
#include "os/safe_read.hpp"
#include "sched/registry.hpp"
#include "sched/scheduler.hpp"
#include "strata/dump_threads.hpp"
#include "threads/thread_block.hpp"

namespace strata {
namespace detail {
namespace {

constexpr std::size_t frames_max = 64;
constexpr std::size_t copied_max = 256 * 1024;  // of one stack, from where it stopped
constexpr int looks_max = 8;

using os::copied;

class dump {
 public:
  // `mine`: the stack of who asks, whose context is in *mine_sp.
  dump(stack* mine, void* mine_sp) : mine_(mine), mine_sp_(mine_sp) {}

  std::string text() {
    for_each_runtime([&](scheduler& s) { show(s); });
    if (out_.empty()) out_ = "strata: no runtime\n";
    return std::move(out_);
  }

 private:
  struct picture {
    copied<stack> header;
    std::vector<std::byte> memory;
    std::uintptr_t sp = 0;
  };
  enum class look { suspended, running, moving, unused };
  // One that has a stack only when its turn has come.
  struct unbegun {
    const task* which;
    const task_type* type;
  };

  void show(scheduler& s) {
    std::size_t shown = 0;
    std::string body;
    std::swap(body, out_);
    const std::vector<unbegun> waiting = read_queues(s);
    for (stack_pool* pool : s.all_stacks()) {
      for (std::size_t i = 0; i < pool->cut(); ++i) shown += show(s, *pool->header(i)) ? 1 : 0;
    }
    std::swap(body, out_);
    out_ += "strata: " + std::to_string(shown) + (shown == 1 ? " thread" : " threads") + " on " +
            std::to_string(s.workers()) + (s.workers() == 1 ? " worker" : " workers");
    if (!waiting.empty())
      out_ += ", about " + std::to_string(waiting.size()) + " more have not begun";
    out_ += "\n" + body;
    for (const unbegun& u : waiting)
      out_ += "thread \"" + name_of(u.type, block_of(s, u.which)) + "\": has not begun\n";
  }

  // Which stacks wait for their turn only; returns what will have one.
  std::vector<unbegun> read_queues(scheduler& s) {
    ready_.clear();
    std::vector<unbegun> others;
    const auto look_at = [&](const task* which) {
      copied<task> t;
      copied<task_type> type;
      if (which == nullptr || !t.read(which) || !type.read(t.get().type)) return;
      // One that is on its way from queue to queue may be seen twice.
      if (!ready_.insert(which).second) return;
      if (type.get().run == &run_on_stack || type.get().run == &run_on_own_stack)
        others.push_back({which, t.get().type});
    };
    for (unsigned i = 0; i < s.workers(); ++i) {
      const place& p = s.place_at(i);
      for (const task* t : tasks_in(p.ready)) look_at(t);
      for (const task* t : tasks_in(p.bound())) look_at(t);
      for (const task* t : tasks_in(p.waive.to_successor)) look_at(t);
      for (const task* t : tasks_in(p.waive.for_anybody)) look_at(t);
    }
    look_at(s.brought_from_outside().first());
    for (const task* t : tasks_in(s.brought_from_outside().ready())) look_at(t);
    return others;
  }

  template <class Queue>
  static std::vector<task*> tasks_in(const Queue& q) {
    copied<Queue> queue;
    if (!queue.read(&q)) return {};
    std::vector<task*> tasks(std::min<std::size_t>(queue.get().size(), std::size_t{1} << 20));
    tasks.resize(queue.get().peek(tasks.data(), tasks.size(), &os::safe_read));
    return tasks;
  }

  // The worker that runs s, if any.
  static std::optional<unsigned> runner_of(scheduler& s, const stack& which) {
    for (unsigned i = 0; i < s.workers(); ++i) {
      const stack* current = nullptr;
      if (os::safe_read(&current, &s.place_at(i).current, sizeof(void*)) && current == &which)
        return i;
    }
    return std::nullopt;
  }

  static bool copy_memory(const stack& header, std::uintptr_t sp, std::vector<std::byte>& memory) {
    const auto bottom = reinterpret_cast<std::uintptr_t>(header.bottom);
    const std::uintptr_t top = bottom + header.bytes;
    if (sp < bottom || sp >= top || sp % sizeof(void*) != 0) return false;
    memory.resize(std::min<std::size_t>(top - sp, copied_max));
    return os::safe_read(memory.data(), reinterpret_cast<const void*>(sp), memory.size());
  }

  look look_at(scheduler& s, stack& which, picture& p) {
    if (!p.header.read(&which) || p.header.get().kind == nullptr) return look::unused;
    if (&which == mine_) {
      p.sp = reinterpret_cast<std::uintptr_t>(mine_sp_);
      return copy_memory(p.header.get(), p.sp, p.memory) ? look::suspended : look::running;
    }
    if (runner_of(s, which)) return look::running;
    p.sp = reinterpret_cast<std::uintptr_t>(p.header.get().sp);
    std::vector<std::byte> again;
    copied<stack> header;
    if (!copy_memory(p.header.get(), p.sp, p.memory)) return look::moving;
    if (runner_of(s, which)) return look::running;
    if (!copy_memory(p.header.get(), p.sp, again) || !header.read(&which)) return look::moving;
    return again == p.memory && header.bytes == p.header.bytes ? look::suspended : look::moving;
  }

  bool show(scheduler& s, stack& which) {
    picture p;
    look seen = look::moving;
    for (int i = 0; i < looks_max && seen == look::moving; ++i) seen = look_at(s, which, p);
    if (seen == look::unused) return false;
    const stack& header = p.header.get();
    out_ += "thread " + std::to_string(header.number) + " \"" +
            name_of(header.kind, header.thread) + "\": ";
    if (const auto on = runner_of(s, which); &which == mine_) {
      out_ += "running on worker " + std::to_string(on.value_or(0)) + ", asks for this\n";
    } else if (seen == look::running) {
      out_ += "running" + (on ? " on worker " + std::to_string(*on) : "") + "\n";
    } else if (seen == look::moving) {
      out_ += "running, or often continued\n";
    } else {
      out_ += state_of(which, p) + "\n";
    }
    if (seen == look::suspended) {
      show_calls(backtrace(modules_, p.sp, {p.sp, p.memory}, frames_max));
    } else if (seen == look::running) {
      show_calls(calls_of_running(s, which, header));
    }
    return true;
  }

  // Where a worker is with `which`, of which `header` is a copy; nothing if it has left it by now.
  std::vector<std::uintptr_t> calls_of_running(scheduler& s, const stack& which,
                                               const stack& header) {
    const auto bottom = reinterpret_cast<std::uintptr_t>(header.bottom);
    const std::uintptr_t top = bottom + header.bytes;
    std::vector<std::byte> memory(copied_max);
    for (int i = 0; i < looks_max; ++i) {
      const auto on = runner_of(s, which);
      if (!on) break;
      const int os_thread = s.place_at(*on).os_thread.load(std::memory_order_relaxed);
      const auto frame = stop_and_look(os_thread, top, memory);
      if (!frame) break;
      // On another stack, such as the worker's own or that of a handler? Then we look again.
      const std::uintptr_t sp = frame->registers.get(frame_registers::sp).value_or(0);
      if (sp < bottom || frame->stack.bytes.empty()) continue;
      return backtrace(modules_, frame->pc, frame->registers, frame->stack, frames_max);
    }
    return {};
  }

  void show_calls(const std::vector<std::uintptr_t>& calls) {
    std::size_t number = 0;
    for (const std::uintptr_t at : calls) {
      const std::string& text = modules_.describe(at);
      // How a stack is left is the same for all.
      if (number == 0 && is_ours(text)) continue;
      std::array<char, 16> head{};
      std::snprintf(head.data(), head.size(), "  #%-2zu ", number++);
      out_ += head.data() + text + "\n";
    }
  }

  static bool is_ours(const std::string& text) {
    return text.starts_with("strata::detail::switch_context") ||
           text.starts_with("strata::detail::place::") ||
           text.starts_with("strata::detail::suspend");
  }

  // The thread that begins with the task; null: it is none.
  static const void* block_of(const scheduler& s, const task* which) {
    const auto* const block = static_cast<const thread_block*>(which);
    copied<thread_block> read;
    return read.read(block) && read.get().home == &s ? block : nullptr;
  }

  // `thread`: a thread_block, or null.
  std::string name_of(const task_type* kind, const void* thread) {
    copied<thread_block> block;
    copied<thread_extras> extras;
    if (thread != nullptr && block.read(thread) && block.get().extras != nullptr &&
        extras.read(block.get().extras)) {
      const std::string& name = extras.get().name;
      std::string text(std::min<std::size_t>(name.size(), 256), '\0');
      if (os::safe_read(text.data(), name.data(), text.size()) && !text.empty())
        return printable(text);
    }
    copied<task_type> type;
    if (kind == nullptr || !type.read(kind)) return "?";
    const auto name = type.get().name;
    std::uintptr_t address = 0;
    std::memcpy(&address, &name, sizeof address);
    if (modules_.code_at(address) == nullptr) return "?";
    return std::string(plain_name(name()));
  }

  static std::string printable(std::string text) {
    for (char& c : text) {
      if (static_cast<unsigned char>(c) < ' ') c = '?';
    }
    return text;
  }

  std::string state_of(const stack& which, const picture& p) {
    const stack& header = p.header.get();
    if (ready_.contains(&which) || header.waits_for == nullptr) return "ready";
    const stack_copy copy{p.sp, p.memory};
    const auto until = reinterpret_cast<std::uintptr_t>(header.waits_until);
    if (const auto word = until != 0 ? copy.word(until & ~std::uintptr_t{7}) : std::nullopt) {
      std::uint32_t state = 0;
      const auto offset = until & 7U;
      std::memcpy(&state, reinterpret_cast<const std::byte*>(&*word) + offset, sizeof state);
      if (state != waiter::waiting) return "ready";
    }
    const std::string what = os::safe_text(header.waits_for, 64);
    copied<thread_block> joined;
    if (what == "thread to end" && header.waits_until == nullptr && joined.read(header.waits_at) &&
        joined.get().ending.load(std::memory_order_relaxed) == thread_block::ended)
      return "ready";
    std::string text = "waiting for " + what;
    if (header.waits_at != nullptr) text += " at " + hexadecimal(header.waits_at);
    return text;
  }

  stack* const mine_;
  void* const mine_sp_;
  loaded_modules modules_;
  std::unordered_set<const task*> ready_;
  std::string out_;
};

// A caller on a stack of ours is shown like the others, as if it had left its stack; all of this is
// done on an OS thread, whose stack is large enough.
struct question {
  stack* who;
  std::string answer;
  std::exception_ptr failure;  // nothing may leave the thread, nor ask()

  template <class F>
  void attempt(F f) noexcept {
    try {
      f();
    } catch (...) {
      failure = std::current_exception();
    }
  }
  static void ask(void* context, void* self) {
    auto& q = *static_cast<question*>(self);
    const auto look = [&] { q.answer = dump(q.who, context).text(); };
    const auto run = [&] {
      const os::own_thread here("strata-dump");
      q.attempt(look);
    };
    q.attempt([&] { std::thread(run).join(); });
  }
};

}  // namespace
}  // namespace detail

std::string threads_text() {
  using namespace detail;
  stack* const mine = this_worker().owner != nullptr ? this_place().current : nullptr;
  if (mine == nullptr) return dump(nullptr, nullptr).text();
  question q{mine, {}, {}};
  strata_call_with_context(&question::ask, &q);
  if (q.failure != nullptr) std::rethrow_exception(std::move(q.failure));
  return std::move(q.answer);
}

void dump_threads(std::FILE* out) {
  const std::string text = threads_text();
  std::fwrite(text.data(), 1, text.size(), out);
  std::fflush(out);
}

}  // namespace strata
