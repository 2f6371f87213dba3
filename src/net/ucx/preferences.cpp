// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/preferences.hpp"

#include <string_view>

namespace strata::net::ucx {

namespace {

// UCX 1.13 ends the process when a peer is lost of which a socket has not taken all that UCX reads
// where it is: it tells the end of that twice. So it copies; devices that read memory by themselves
// do that for rendezvous all the same.
constexpr preference copies{"UCX_ZCOPY_THRESH", "ZCOPY_THRESH", "inf"};

// UCX has two sets of protocols. The new one, the default from 1.16 on, ends the process when a
// peer is lost in the middle of a rendezvous that copies: who gives it up still has the memory
// registered, which an assertion forbids. 1.18 gives the memory back first. The old set, the
// default until then, does so in 1.13 and 1.18.
constexpr preference old_protocols{"UCX_PROTO_ENABLE", "PROTO_ENABLE", "n"};
// The new set heeds no threshold in a rendezvous: 1.23 reads where it is what goes out by sockets,
// and tells the end of that twice, as 1.13 does.
constexpr preference copies_in_rendezvous{"UCX_PROTOS", "PROTOS", "^rndv/am/zcopy"};
constexpr version first_of_the_new{1, 16};
constexpr version first_that_gives_back{1, 18};

// ucp_config_modify() knows what is of TCP alone without its prefix in 1.13, and only with it in
// 1.18. Between, it is told both, since a name that UCX does not know has no effect: up to 1.20.0
// it takes the name, and its workers warn of it where UCX_LOG_LEVEL lets them.
constexpr version last_of_short_names{1, 17};
constexpr version last_without_whole_names{1, 13};

void tell_sockets(std::vector<preference>& all, version library, const char* variable,
                  const char* value) {
  const char* const whole_name = variable + std::string_view("UCX_").size();
  const char* const short_name = variable + std::string_view("UCX_TCP_").size();
  if (library <= last_of_short_names) all.push_back({variable, short_name, value});
  if (library > last_without_whole_names) all.push_back({variable, whole_name, value});
}

}  // namespace

std::vector<preference> preferences_for(version library, bool some_unreachable) {
  std::vector<preference> all{copies};
  // And a message into one buffer (cluster::part_bytes_max), not into eight.
  tell_sockets(all, library, "UCX_TCP_TX_SEG_SIZE", "64K");
  if (some_unreachable) tell_sockets(all, library, "UCX_TCP_CONN_NB", "y");
  if (library >= first_of_the_new)
    all.push_back(library < first_that_gives_back ? old_protocols : copies_in_rendezvous);
  return all;
}

}  // namespace strata::net::ucx
