// SPDX-License-Identifier: Apache-2.0
// The state of a transport over UCX before it joins: how UCX calls us, and what its threads sleep
// on.
#include "net/ucx/ucx_state.hpp"

#include "net/wait_for_events.hpp"
#include "strata/error.hpp"

namespace strata::net::ucx {

ucx_transport::state::state(const settings& given)
    : s(given),
      ucp(ucp_library::get()),
      peers(given.nodes),
      w(given.devices, given.some_unreachable),
      receiver_sleeps(epoll_on({receiver_bell.get(), w.event_descriptor()})),
      attendants(receiver_sleeps.get(), w.event_descriptor()),
      sender_sleeps(epoll_on({sender_bell.get()})),
      sender_watches(epoll_on({sender_bell.get(), w.event_descriptor()})) {
  for (unsigned i = 0; i < whats; ++i) {
    handlers[i] = {this, i};
    ucp_am_handler_param_t p{};
    p.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                   UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    p.id = i;
    p.flags = UCP_AM_FLAG_WHOLE_MSG;
    p.cb = [](void* arg, const void* head, std::size_t head_bytes, void* data, std::size_t bytes,
              const ucp_am_recv_param_t* how) {
      const handler& h = *static_cast<const handler*>(arg);
      if (h.what == is_block) {
        return h.of->block_comes(head, head_bytes, data, bytes, how->recv_attr);
      }
      const std::span all(static_cast<std::byte*>(data), bytes);
      if (h.what == is_batch) {
        if ((how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) h.of->batch_arrived(all);
        return UCS_OK;
      }
      return h.of->arrived(h.what, static_cast<std::byte*>(data), bytes, how->recv_attr);
    };
    p.arg = &handlers[i];
    const ucs_status_t status = ucp.ucp_worker_set_am_recv_handler(w.handle(), &p);
    if (status != UCS_OK) {
      throw error(std::string("UCX takes no handler: ") + ucp.ucs_status_string(status));
    }
  }
}

}  // namespace strata::net::ucx
