// SPDX-License-Identifier: Apache-2.0
#include "cluster/failure_text.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <typeinfo>

#include "strata/error.hpp"

namespace strata::cluster {
namespace {

std::string name_of(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? plain.get() : type.name();
}

std::string words_for(const std::exception_ptr& error, net::node_id node) {
  const std::string where = " on node " + std::to_string(node);
  try {
    std::rethrow_exception(error);
  } catch (const remote_error& e) {
    return e.what();  // says where it was first thrown
  } catch (const std::exception& e) {
    return name_of(typeid(e)) + where + ": " + e.what();
  } catch (...) {
    const std::type_info* const type = abi::__cxa_current_exception_type();
    return (type != nullptr ? name_of(*type) : "an exception") + where;
  }
}

}  // namespace

std::string describe_failure(const std::exception_ptr& error, net::node_id node) {
  constexpr std::size_t bytes_max = 4000;
  return words_for(error, node).substr(0, bytes_max);
}

}  // namespace strata::cluster
