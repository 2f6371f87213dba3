// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/worker.hpp"

#include <cstdlib>
#include <vector>

#include "net/ucx/preferences.hpp"
#include "strata/detail/check.hpp"
#include "strata/error.hpp"

namespace strata::net::ucx {

worker::worker(const std::string& devices, bool some_unreachable) : ucp_(ucp_library::get()) {
  // It may throw, and there is nothing to release yet.
  const std::vector<preference> preferences =
      preferences_for(ucp_.loaded_version(), some_unreachable);
  ucp_config_t* config = nullptr;
  ucs_status_t status = ucp_.ucp_config_read(nullptr, nullptr, &config);
  if (status != UCS_OK) fail("cannot read UCX's configuration", status);
  if (!devices.empty() && std::getenv("UCX_NET_DEVICES") == nullptr) {
    status = ucp_.ucp_config_modify(config, "NET_DEVICES", devices.c_str());
  }
  for (const preference& p : preferences) {
    // From 1.20.1 on a name that UCX does not know is UCS_ERR_INVALID_PARAM (openucx/ucx#11003): it
    // has no such sockets then.
    if (std::getenv(p.variable) == nullptr) (void)ucp_.ucp_config_modify(config, p.name, p.value);
  }
  if (status == UCS_OK) {
    ucp_params_t wanted{};
    wanted.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
    wanted.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    wanted.mt_workers_shared = 0;
    status = ucp_.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &wanted, config, &context_);
  }
  ucp_.ucp_config_release(config);
  if (status != UCS_OK) fail("cannot start UCX (UCX_TLS, UCX_NET_DEVICES?)", status);

  ucp_worker_params_t how{};
  how.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_EVENTS;
  // Any thread may call, one at a time: the transport's lock covers more than UCX's would.
  how.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  how.events = UCP_WAKEUP_RX | UCP_WAKEUP_TX;
  status = ucp_.ucp_worker_create(context_, &how, &handle_);
  if (status != UCS_OK)
    fail("cannot make a UCX worker (/dev/shm full? free it, or do without: UCX_TLS=^posix)",
         status);
  status = ucp_.ucp_worker_get_efd(handle_, &events_);
  if (status != UCS_OK) fail("UCX cannot sleep on these transports (UCX_TLS?)", status);

  ucp_address_t* bytes = nullptr;
  std::size_t count = 0;
  status = ucp_.ucp_worker_get_address(handle_, &bytes, &count);
  if (status != UCS_OK) fail("cannot tell UCX's address", status);
  address_.assign(reinterpret_cast<const char*>(bytes), count);
  ucp_.ucp_worker_release_address(handle_, bytes);
}

worker::~worker() { close(); }

void worker::close() noexcept {
  if (handle_ != nullptr) ucp_.ucp_worker_destroy(handle_);
  if (context_ != nullptr) ucp_.ucp_cleanup(context_);
  handle_ = nullptr;
  context_ = nullptr;
}

void worker::fail(const char* what, ucs_status_t why) {
  const std::string text = std::string(what) + ": " + ucp_.ucs_status_string(why);
  close();
  throw error(text);
}

bool worker::arm() {
  const ucs_status_t status = ucp_.ucp_worker_arm(handle_);
  STRATA_CHECK(status == UCS_OK || status == UCS_ERR_BUSY, static_cast<int>(status));
  return status == UCS_OK;
}

}  // namespace strata::net::ucx
