// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/arrivals.hpp"

#include <cstring>
#include <exception>
#include <new>
#include <strata/thread.hpp>

#include "apps/mapview/problem_of.hpp"
#include "apps/mapview/send_at_last.hpp"

namespace mapview {

void arrivals::gather(const std::function<std::uint32_t()>& ask,
                      const std::function<void(fragment)>& use) {
  std::uint32_t awaited = 0;
  std::exception_ptr problem;
  strata::endpoint asker;
  strata::thread asks([&, to = id()] {
    problem = problem_of([&] { awaited = ask(); });
    // The viewer waits for it; it is sent in vain only when the viewer has given up.
    (void)problem_of([&] { send_at_last(asker, to, fragment_head{{}, {}, found::all_asked}); });
  });
  const std::exception_ptr failure = problem_of([&] {
    bool all_asked = false;
    for (std::uint32_t come = 0; !all_asked || come < awaited;) {
      const strata::message m = mine_->receive_message();
      fragment_head head;
      if (m.content.size() < sizeof(head)) throw strata::error("a fragment without a head");
      std::memcpy(&head, m.content.data(), sizeof(head));
      if (head.how == found::out_of_memory) throw std::bad_alloc();
      if (head.how == found::all_asked) {
        asks.join();
        all_asked = true;
        if (problem != nullptr) std::rethrow_exception(problem);
      } else if (const std::size_t i = index_of(head.tile); !seen_[i]) {
        seen_[i] = true;
        ++come;
        use(unpacked(m, head));
      }
    }
  });
  if (failure == nullptr) return;
  mine_.reset();  // whoever still sends need not wait for room
  if (asks.joinable()) asks.join();
  std::rethrow_exception(failure);
}

}  // namespace mapview
