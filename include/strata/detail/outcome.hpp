// SPDX-License-Identifier: Apache-2.0
// What a task that ran elsewhere left behind: a value or an exception.
#pragma once
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <variant>

namespace strata::detail {

// void where a value is needed; and what is kept is moved on, also where a function returns it as
// const.
template <class T>
using regular = std::conditional_t<std::is_void_v<T>, std::monostate, std::remove_cv_t<T>>;

// Calls f and makes its result a value.
template <class F>
decltype(auto) invoke_regular(F& f) {
  if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
    std::invoke(f);
    return std::monostate{};
  } else {
    return std::invoke(f);
  }
}

// Empty until capture(), and cheap while empty: it initialises nothing, because most are never
// used.
template <class T>
class outcome {
 public:
  static_assert(!std::is_reference_v<T>, "return a pointer or std::ref instead of a reference");
  outcome() noexcept {}
  outcome(const outcome&) = delete;
  outcome& operator=(const outcome&) = delete;
  ~outcome() {}

  // Runs f and keeps what it returned or threw. At most once.
  template <class F>
  void capture(F& f) noexcept {
    try {
      ::new (static_cast<void*>(std::addressof(value_))) regular<T>(invoke_regular(f));
      threw_ = false;
    } catch (...) {
      ::new (static_cast<void*>(&error_)) std::exception_ptr(std::current_exception());
      threw_ = true;
    }
  }

  // After capture(), once: the value, or the exception is rethrown.
  regular<T> take() {
    if (threw_) {
      const std::exception_ptr e = std::move(error_);
      std::destroy_at(&error_);
      std::rethrow_exception(e);
    }
    const destroyer d{std::addressof(value_)};
    return std::move(value_);
  }

  // After capture(), instead of take().
  void drop() noexcept {
    if (threw_) {
      std::destroy_at(&error_);
    } else {
      std::destroy_at(std::addressof(value_));
    }
  }

  [[nodiscard]] bool threw() const noexcept { return threw_; }

 private:
  struct destroyer {
    regular<T>* value;
    ~destroyer() { std::destroy_at(value); }
  };
  union {
    regular<T> value_;
    std::exception_ptr error_;
  };
  bool threw_;
};

}  // namespace strata::detail
