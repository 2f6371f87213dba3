// SPDX-License-Identifier: Apache-2.0
#include "cluster/words/thrown.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "base/shortened.hpp"
#include "cluster/words/kinds.hpp"

namespace strata::cluster {
namespace {

static_assert(2 * sizeof(std::uint64_t) + sizeof(std::uint32_t) +
                      (3 + remote_error::trace_max) * sizeof(std::uint16_t) +
                      thrown_type_bytes_max + thrown_words_bytes_max <=
                  message_bytes_max,
              "an exception and the head of an answer fit into a message");

struct thrown_facts {
  std::string type_name, words;
  std::vector<node_id> trace;
  std::size_t hops = 0;
};

std::string demangled(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? plain.get() : type.name();
}

thrown_facts facts_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const remote_error& e) {
    return {e.type_name(), e.message(), e.trace(), e.hops()};
  } catch (const std::exception& e) {
    return {demangled(typeid(e)), e.what(), {}, 0};
  } catch (...) {
    const std::type_info* const type = abi::__cxa_current_exception_type();
    return {type != nullptr ? demangled(*type) : "an exception", {}, {}, 0};
  }
}

void add_sized(writer& out, const std::string& text, std::size_t bytes_max) {
  const std::string part = shortened(text, bytes_max);
  out.add(static_cast<std::uint16_t>(part.size())).add_text(part);
}

std::string take_sized(reader& in, std::size_t bytes_max) {
  const auto n = in.take<std::uint16_t>();
  if (n > bytes_max) throw malformed("an exception with longer words than any has");
  return reader(in.take_bytes(n)).take_text();
}

}  // namespace

void pack_thrown(writer& out, const std::exception_ptr& error, node_id self) {
  thrown_facts facts = facts_of(error);
  if (facts.trace.size() < remote_error::trace_max) facts.trace.push_back(self);
  const auto hops = std::min<std::size_t>(facts.hops + 1, UINT32_MAX);
  out.add(static_cast<std::uint32_t>(hops)).add(static_cast<std::uint16_t>(facts.trace.size()));
  for (const node_id n : facts.trace) out.add(n);
  add_sized(out, facts.type_name, thrown_type_bytes_max);
  add_sized(out, facts.words, thrown_words_bytes_max);
}

remote_error unpack_thrown(reader& in, node_id nodes) {
  const auto hops = in.take<std::uint32_t>();
  const auto recorded = in.take<std::uint16_t>();
  const bool is_whole = recorded == hops;
  const bool is_beginning = recorded == remote_error::trace_max && hops > recorded;
  if (recorded == 0 || recorded > remote_error::trace_max || !(is_whole || is_beginning))
    throw malformed("an exception that came by no way that there is");
  std::vector<node_id> trace;
  for (unsigned i = 0; i < recorded; ++i) {
    trace.push_back(in.take<node_id>());
    if (trace.back() >= nodes) throw malformed("an exception of a node that there cannot be");
  }
  std::string type_name = take_sized(in, thrown_type_bytes_max);
  std::string words = take_sized(in, thrown_words_bytes_max);
  if (!in.empty()) throw malformed("an exception with something behind it");
  return remote_error(std::move(type_name), std::move(words), std::move(trace), hops);
}

}  // namespace strata::cluster
