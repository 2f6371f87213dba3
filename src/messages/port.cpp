// SPDX-License-Identifier: Apache-2.0
#include "messages/port.hpp"

#include <bit>

namespace strata::messages {
namespace {

endpoint_id name(node_id_t node, std::uint32_t generation, std::uint32_t number) {
  return endpoint_id::from_bits((std::uint64_t{node} << 48) |
                                (std::uint64_t{generation} << port_table::number_bits) |
                                (number + 1));
}

}  // namespace

port* port_table::at(std::uint32_t number) const noexcept {
  const std::uint32_t n = number + (1U << first_bits);
  const unsigned top = static_cast<unsigned>(std::bit_width(n)) - 1;
  // Acquire. Partner: open().
  port* const first = chunk_[top - first_bits].load(std::memory_order_acquire);
  return first == nullptr ? nullptr : first + (n - (1U << top));
}

port* port_table::find(endpoint_id id) const noexcept {
  const auto number = static_cast<std::uint32_t>(id.bits() & ports_max);
  return number == 0 ? nullptr : at(number - 1);
}

port* port_table::open(node_id_t node, messenger& of) {
  port* p = nullptr;
  {
    const std::lock_guard lock(mutex_);
    std::uint32_t number = made_;
    if (!free_.empty()) {
      number = free_.back();
      free_.pop_back();
    } else {
      if (made_ == ports_max - (1U << first_bits)) return nullptr;
      const std::uint32_t n = made_ + (1U << first_bits);
      if (std::has_single_bit(n)) {
        const unsigned chunk = static_cast<unsigned>(std::bit_width(n)) - 1 - first_bits;
        free_.reserve(made_ + n);  // so that give_back() takes no memory
        owned_[chunk] = std::make_unique<port[]>(n);
        chunk_[chunk].store(owned_[chunk].get(), std::memory_order_release);
      }
      ++made_;
    }
    p = at(number);
    p->number = number;
  }
  const std::lock_guard lock(p->lock);
  p->messenger = &of;
  p->id = name(node, ++p->generation, p->number);
  return p;
}

bool port_table::give_back(port& p) noexcept {
  const std::lock_guard lock(mutex_);
  // Its next name would be one that it has had.
  if (p.generation == generations_max) {
    ++spent_;
  } else {
    free_.push_back(p.number);
  }
  return is_over_ && free_.size() + spent_ == made_;
}

bool port_table::end() {
  const std::lock_guard lock(mutex_);
  is_over_ = true;
  return free_.size() + spent_ == made_;
}

}  // namespace strata::messages
