// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace strata::launcher {

// The numeric address of a host that the user named. Throws user_error when there is none.
std::string resolve(const std::string& name);

// Whether ssh would lead back to this machine: its name, localhost, or one of its addresses.
bool is_this_machine(const std::string& name, const std::string& numeric_address);

// Our address on the way to another one; empty when there is no way.
std::string source_address_towards(const std::string& numeric_address);

bool is_numeric_address(const std::string& text);

bool is_loopback(const std::string& numeric_address);

// Whether it stands for all addresses of a host, where one listens, and for none otherwise.
bool is_unspecified(const std::string& numeric_address);

}  // namespace strata::launcher
