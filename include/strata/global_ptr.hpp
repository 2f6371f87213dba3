// SPDX-License-Identifier: Apache-2.0
// Addresses in a job of several nodes (EARTH's GLOBAL pointers).
#pragma once
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "strata/detail/worker.hpp"
#include "strata/error.hpp"

namespace strata {

/// The number of a node (process) in its job, 0 to num_nodes() - 1.
using node_id_t = std::uint16_t;

namespace detail {
// Throws misuse_error.
[[noreturn, gnu::cold]] void refuse_outside_nodes();
}  // namespace detail

/// The node of the calling task or fiber. Throws misuse_error outside a runtime.
[[nodiscard]] inline node_id_t node_id() {
  const detail::worker& w = detail::this_worker();
  if (w.owner == nullptr) [[unlikely]]
    detail::refuse_outside_nodes();
  return w.node;
}

/// The number of nodes of the job: 1 for a program that no launcher has started (`strata run`,
/// `srun --mpi=pmix`, `mpirun`), and outside a runtime. Where nodes come and go (`strata run
/// --elastic`): how many numbers have been given out so far, of which some may have left; see
/// strata/membership.hpp.
[[nodiscard]] inline unsigned num_nodes() noexcept {
  return detail::this_worker().nodes.load(std::memory_order_relaxed);
}

/// The number of workers of this node, in the calling task's runtime: so many of its tasks and
/// threads run at the same time (runtime::workers()). 1 outside a runtime, where a plain thread
/// runs alone. Never blocks.
[[nodiscard]] unsigned num_workers() noexcept;

namespace detail {

// What may stand for the number of a node: integers, but not what happens to be one in C++.
template <class T>
concept node_number = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> &&
                      !std::same_as<T, char8_t> && !std::same_as<T, char16_t> &&
                      !std::same_as<T, char32_t> && !std::same_as<T, wchar_t>;

// Throws misuse_error: no node has this number.
[[noreturn, gnu::cold]] void refuse_node_number(const std::string& number);

}  // namespace detail

/// The node on which something is to be done.
struct on_node {
  constexpr on_node() noexcept = default;
  /// Of any integer type but bool and those of characters. Throws misuse_error for a number that no
  /// node can have: a negative one, or one above 65,535.
  template <detail::node_number Number>
  constexpr on_node(Number n) : number(static_cast<node_id_t>(n)) {
    if (!std::in_range<node_id_t>(n)) [[unlikely]]
      detail::refuse_node_number(std::to_string(n));
  }
  node_id_t number = 0;
};

namespace detail {

// Node and address in one word, so that it travels in a register: user-space addresses have 48 bits
// on x86-64 and AArch64.
class global_address {
 public:
  constexpr global_address() noexcept = default;
  global_address(node_id_t node, const void* address) noexcept
      : bits_((std::uint64_t{node} << address_bits) |
              (reinterpret_cast<std::uintptr_t>(address) & address_mask)) {}

  [[nodiscard]] node_id_t node() const noexcept {
    return static_cast<node_id_t>(bits_ >> address_bits);
  }
  [[nodiscard]] void* address() const noexcept {
    return reinterpret_cast<void*>(bits_ & address_mask);
  }
  [[nodiscard]] std::uint64_t bits() const noexcept { return bits_; }
  static global_address from_bits(std::uint64_t bits) noexcept {
    global_address a;
    a.bits_ = bits;
    return a;
  }
  friend bool operator==(global_address, global_address) noexcept = default;
  // By node, then by address.
  friend auto operator<=>(global_address, global_address) noexcept = default;

 private:
  static constexpr unsigned address_bits = 48;
  static constexpr std::uint64_t address_mask = (std::uint64_t{1} << address_bits) - 1;
  std::uint64_t bits_ = 0;
};

// Throws misuse_error: no such node, or outside a runtime.
[[noreturn, gnu::cold]] void refuse_node(node_id_t node, const worker& w);
// The same, or: it lies on another node.
[[noreturn, gnu::cold]] void refuse_far_address(global_address a, const worker& w,
                                                const char* instead);

inline void check_inside(const worker& w) {
  if (w.owner == nullptr) [[unlikely]]
    refuse_node(w.node, w);
}

// The address, which must lie on the calling worker's node. instead: for people, what to do if it
// does not.
inline void* local_address(global_address a, const worker& w, const char* instead) {
  if (a.node() != w.node || w.owner == nullptr) [[unlikely]]
    refuse_far_address(a, w, instead);
  return a.address();
}

}  // namespace detail

/// The address of a T on some node. It cannot be dereferenced: remote data is reached by put_sync,
/// get_sync and block_move_sync only. A value of 8 bytes; trivially copyable, so it can be a
/// parameter of a token.
template <class T>
class global_ptr {
 public:
  /// Points nowhere.
  constexpr global_ptr() noexcept = default;
  /// `local` on `node`.
  global_ptr(node_id_t node, T* local) noexcept : where_(node, local) {}
  /// What a global address of another part of the runtime stands for.
  explicit global_ptr(detail::global_address where) noexcept : where_(where) {}
  /// The same place, as one that is not to be written: of a T what was of an U, where T is U but
  /// for const.
  template <class U>
  requires(!std::same_as<U, T> && std::is_convertible_v<U (*)[], T (*)[]>)
      global_ptr(global_ptr<U> other)
  noexcept : where_(other.where()) {}

  /// The node that holds the T (EARTH's OWNER_OF).
  [[nodiscard]] node_id_t node() const noexcept { return where_.node(); }

  /// The plain pointer. Throws misuse_error when the T lies on another node than the caller.
  [[nodiscard]] T* local() const {
    return static_cast<T*>(detail::local_address(where_, detail::this_worker(),
                                                 "reach it by get_sync, put_sync or "
                                                 "block_move_sync"));
  }

  /// n elements further, on the same node; and what else pointers into an array can do. It takes no
  /// look at what they point to.
  friend global_ptr operator+(global_ptr p, std::ptrdiff_t n) noexcept { return p += n; }
  friend global_ptr operator+(std::ptrdiff_t n, global_ptr p) noexcept { return p += n; }
  friend global_ptr operator-(global_ptr p, std::ptrdiff_t n) noexcept { return p -= n; }
  global_ptr& operator+=(std::ptrdiff_t n) noexcept {
    return *this = global_ptr(where_.node(), static_cast<T*>(where_.address()) + n);
  }
  global_ptr& operator-=(std::ptrdiff_t n) noexcept { return *this += -n; }
  global_ptr& operator++() noexcept { return *this += 1; }
  global_ptr& operator--() noexcept { return *this -= 1; }
  global_ptr operator++(int) noexcept { return std::exchange(*this, *this + 1); }
  global_ptr operator--(int) noexcept { return std::exchange(*this, *this - 1); }
  /// How many elements lie from b to a. Both into the same array.
  friend std::ptrdiff_t operator-(global_ptr a, global_ptr b) noexcept {
    return static_cast<T*>(a.where_.address()) - static_cast<T*>(b.where_.address());
  }

  /// Node and address as one value, for the runtime.
  [[nodiscard]] detail::global_address where() const noexcept { return where_; }

  /// Whether it is not null.
  explicit operator bool() const noexcept { return where_.address() != nullptr; }
  friend bool operator==(global_ptr, global_ptr) noexcept = default;
  /// An order of all of them, of any node; within an array, that of its elements.
  friend auto operator<=>(global_ptr, global_ptr) noexcept = default;

 private:
  detail::global_address where_;
};

/// The global address of something on this node (EARTH's TO_GLOBAL). Throws misuse_error outside a
/// runtime.
template <class T>
global_ptr<T> to_global(T* local) {
  return global_ptr<T>(node_id(), local);
}

/// The node that holds what p points to.
template <class T>
node_id_t owner_of(global_ptr<T> p) noexcept {
  return p.node();
}

/// An address (a pointer, std::span and the like) that is sent as it is, where addresses do not
/// compile: for who knows that it is used in the process that it is from. Instead of a reference
/// send a pointer.
///
///   strata::invoke<search>(strata::node_id(), strata::local_address(&table), done);
///
/// Becomes a T where one is wanted, such as the parameter `table_type* table` of search. Nobody
/// looks where that is: on another node it is an address of something else, or of nothing. A
/// global_ptr travels as well, and its local() throws there.
template <class T>
class local_address {
 public:
  /// No address: T's own initial value.
  constexpr local_address() requires std::default_initializable<T>
  = default;
  /// The caller vouches that it is used on this node only.
  constexpr explicit local_address(T address) noexcept : address_(address) {}
  constexpr operator T() const noexcept { return address_; }
  [[nodiscard]] constexpr T get() const noexcept { return address_; }

 private:
  T address_{};
};

}  // namespace strata
