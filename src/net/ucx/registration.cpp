// SPDX-License-Identifier: Apache-2.0
// Memory that the program has registered. UCX locks it and tells its devices where it is when it is
// mapped, which it does for every transfer otherwise, unless its own cache still knows the memory.
#include <memory>
#include <mutex>
#include <utility>

#include "net/ucx/ucx_state.hpp"

namespace strata::net::ucx {

class ucx_transport::state::mapped_memory final : public registration {
 public:
  mapped_memory(std::shared_ptr<link> way, std::shared_ptr<registered_block> memory)
      : way_(std::move(way)), memory_(std::move(memory)) {}
  mapped_memory(const mapped_memory&) = delete;
  mapped_memory& operator=(const mapped_memory&) = delete;
  ~mapped_memory() override {
    const std::lock_guard held(way_->mutex);  // so that the state stays meanwhile
    if (way_->to != nullptr) way_->to->end_registration(memory_);
  }
  [[nodiscard]] std::uint64_t uses() const noexcept override {
    return memory_->uses.load(std::memory_order_relaxed);
  }

 private:
  const std::shared_ptr<link> way_;
  const std::shared_ptr<registered_block> memory_;
};

std::unique_ptr<transfers::registration> ucx_transport::state::register_memory(
    std::span<std::byte> bytes) {
  STRATA_CHECK(!bytes.empty(), bytes.size());
  const auto memory = std::make_shared<registered_block>(bytes);
  auto made = std::make_unique<mapped_memory>(way_here, memory);  // ends what follows, if it fails
  ucp_mem_map_params_t where{};
  where.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
  where.address = bytes.data();
  where.length = bytes.size();
  {
    // UCX's context is called by one thread at a time, as its worker is.
    const std::lock_guard held(lock);
    if (ucp.ucp_mem_map(w.context(), &where, &memory->handle) == UCS_OK) {
      ++mapped;
      registered.add(memory);
      return made;
    }
    memory->handle = nullptr;
  }
  return nullptr;
}

void ucx_transport::state::end_registration(const std::shared_ptr<registered_block>& b) noexcept {
  const std::lock_guard held(lock);
  registered.end(b);
  unmap_ended();
}

void ucx_transport::state::end_registrations() noexcept {
  const std::lock_guard no_others(way_here->mutex);
  way_here->to = nullptr;
  const std::lock_guard held(lock);
  registered.end_all();
  unmap_ended();
}

void ucx_transport::state::use_registration(block& b, std::span<const std::byte> bytes,
                                            ucp_request_param_t& how) {
  b.registered = registered.use(bytes);
  if (b.registered == nullptr) return;
  how.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
  how.memh = b.registered->handle;
}

void ucx_transport::state::unmap_ended() noexcept {
  registered.for_each_idle([this](ucp_mem_h handle) {
    --mapped;
    (void)ucp.ucp_mem_unmap(w.context(), handle);
  });
}

}  // namespace strata::net::ucx
