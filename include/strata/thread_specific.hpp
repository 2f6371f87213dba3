// SPDX-License-Identifier: Apache-2.0
// A pointer of which every thread has its own: what thread_local is to kernel threads. (Interface:
// boost::thread_specific_ptr.)
//
//   strata::thread_specific_ptr<log_buffer> buffer;
//   ...
//   if (buffer.get() == nullptr) buffer.reset(new log_buffer);
//   buffer->append("...");  // this thread's; deleted at its end
#pragma once
#include <atomic>
#include <cstddef>
#include <type_traits>

#include "strata/detail/specifics.hpp"

namespace strata {

namespace detail {

// What the values of one thread_specific_ptr have in common, and by whose address they are found.
// It exists until the last of them is gone, so a pointer made later never finds an old value.
struct specific_key {
  explicit specific_key(void (*destroy)(specific_key&, void* value)) noexcept;
  specific_key(const specific_key&) = delete;
  specific_key& operator=(const specific_key&) = delete;
  virtual ~specific_key() = default;

  [[nodiscard]] void* get() const;
  void set(void* value);
  void* release();
  void drop() noexcept;

 private:
  static void end_value(void* value, void* argument);
  void (*const destroy)(specific_key&, void* value);
  std::atomic<std::size_t> users{1};  // the pointer itself, and each value
};

template <class T>
struct specific_key_of : specific_key {
  explicit specific_key_of(void (*f)(T*)) noexcept : specific_key(&destroy), cleanup(f) {}
  static void destroy(specific_key& self, void* value) {
    if (auto* const f = static_cast<specific_key_of&>(self).cleanup) f(static_cast<T*>(value));
  }
  void (*const cleanup)(T*);
};

}  // namespace detail

/// One T* for each thread, null at first. What a thread's pointer points to is cleaned up at the
/// thread's end, on its stack, by `delete` or by the function given; before join() returns. A
/// cleanup may set such pointers again: they are cleaned up in turn, four rounds in all.
///
/// Usable in threads, in run()'s function, in fork-join branches and other tasks that own a stack,
/// and in threads outside a runtime. Throws misuse_error in fibers. A branch that is not stolen
/// runs in its parent's thread and shares its pointers; one that is stolen has its own, which are
/// cleaned up soon after its end. Destroying the object cleans up the caller's value; those of
/// others are cleaned up at their end.
template <class T>
class thread_specific_ptr {
 public:
  using element_type = T;

  /// Values are cleaned up by `delete`.
  thread_specific_ptr() : thread_specific_ptr([](T* value) { delete value; }) {}
  /// With null nothing is done for a value.
  explicit thread_specific_ptr(void (*cleanup)(T*))
      : key_(new detail::specific_key_of<T>(cleanup)) {}
  thread_specific_ptr(const thread_specific_ptr&) = delete;
  thread_specific_ptr& operator=(const thread_specific_ptr&) = delete;
  /// Cleans up the caller's value alone, see above.
  ~thread_specific_ptr() {
    reset();
    key_->drop();
  }

  /// The caller's pointer. The two below must not be used where it is null.
  [[nodiscard]] T* get() const { return static_cast<T*>(key_->get()); }
  T* operator->() const { return get(); }
  T& operator*() const { return *get(); }
  /// Not null?
  explicit operator bool() const { return get() != nullptr; }
  /// The caller's pointer; it is forgotten without cleaning up.
  T* release() { return static_cast<T*>(key_->release()); }
  /// Cleans up what the caller's pointer points to, unless it is `value` already.
  void reset(T* value = nullptr) { key_->set(const_cast<std::remove_cv_t<T>*>(value)); }

 private:
  detail::specific_key* const key_;
};

}  // namespace strata
