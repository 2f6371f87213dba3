// SPDX-License-Identifier: Apache-2.0
#include "strata/registered_memory.hpp"

#include <utility>
#include <vector>

#include "messages/current_messenger.hpp"
#include "messages/messenger.hpp"
#include "net/transfers.hpp"
#include "strata/detail/worker.hpp"
#include "strata/error.hpp"

namespace strata {

namespace messages {

class registrations {
 public:
  registrations(const std::vector<net::transfers*>& ways, std::span<std::byte> bytes) {
    each_.reserve(ways.size());
    for (net::transfers* const way : ways) {
      if (auto one = way->register_memory(bytes)) each_.push_back(std::move(one));
    }
  }
  [[nodiscard]] std::size_t size() const noexcept { return each_.size(); }
  [[nodiscard]] std::uint64_t uses() const noexcept {
    std::uint64_t all = 0;
    for (const auto& one : each_) all += one->uses();
    return all;
  }

 private:
  std::vector<std::unique_ptr<net::transfers::registration>> each_;
};

}  // namespace messages

namespace {

// Null: there is nothing to register.
messages::registrations* registrations_of(std::span<std::byte> bytes) {
  const messages::messenger& messenger = messages::messenger_or_refusal(
      "memory can only be registered within a runtime (runtime::run())");
  if (bytes.empty()) return nullptr;
  const detail::uninterrupted guard;  // no other thread of this worker waits for a network's lock
  const std::vector<net::transfers*> ways = messenger.transfers_here();
  return ways.empty() ? nullptr : new messages::registrations(ways, bytes);
}

}  // namespace

void registered_memory::release::operator()(messages::registrations* r) const noexcept {
  const detail::uninterrupted guard;  // as above
  delete r;
}

registered_memory::registered_memory(std::span<std::byte> bytes)
    : bytes_(bytes), with_(registrations_of(bytes)) {}

registered_memory::registered_memory(registered_memory&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})), with_(std::move(other.with_)) {}

registered_memory& registered_memory::operator=(registered_memory&& other) noexcept {
  if (this == &other) return *this;
  with_ = std::move(other.with_);
  bytes_ = std::exchange(other.bytes_, {});
  return *this;
}

registered_memory::~registered_memory() = default;

std::size_t registered_memory::networks() const noexcept {
  return with_ == nullptr ? 0 : with_->size();
}

std::uint64_t registered_memory::uses() const noexcept {
  return with_ == nullptr ? 0 : with_->uses();
}

}  // namespace strata
