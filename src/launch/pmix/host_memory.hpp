// SPDX-License-Identifier: Apache-2.0
// Memory that the nodes of one host share though no launcher has handed it to them: the first of
// them makes it, and the others open it as a file of that process in /proc, which the kernel allows
// to the same user alone. Beside the transport's memory there is the roll, in which a node that
// leaves on purpose says so: who ends without is lost.
#pragma once
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "os/descriptor.hpp"

namespace strata::launch::pmix {

class host_memory {
 public:
  // Where to find it, for the other nodes.
  struct ticket {
    std::uint32_t process = 0;  // 0: there is none
    std::uint32_t memory = 0, roll = 0;
    std::array<std::uint8_t, 16> mark{};  // at the beginning of the roll; random
  };

  // Null when the system refuses.
  static std::unique_ptr<host_memory> make();
  // Null when it cannot be reached from here, or what is there is something else: a process has
  // another number in another container.
  static std::unique_ptr<host_memory> find(const ticket& where);
  ~host_memory();
  host_memory(const host_memory&) = delete;
  host_memory& operator=(const host_memory&) = delete;

  [[nodiscard]] const ticket& where() const noexcept { return where_; }
  // The transport's memory, empty at first.
  [[nodiscard]] int descriptor() const noexcept { return memory_.get(); }

  static constexpr unsigned places = 4096;
  // Of the nodes of this host, in their order.
  void leave(unsigned place) noexcept;
  [[nodiscard]] bool has_left(unsigned place) const noexcept;

 private:
  struct page {
    std::array<std::uint8_t, 16> mark;
    std::array<std::atomic<std::uint8_t>, places> left;
  };
  host_memory(os::descriptor memory, os::descriptor roll, page* mapped, const ticket& where);
  static page* map(int roll);

  os::descriptor memory_, roll_;
  page* page_;
  ticket where_;
};

}  // namespace strata::launch::pmix
