// SPDX-License-Identifier: Apache-2.0
// A model as Relacy sees it: the same class for all models of so many threads. Relacy compiles its
// machinery anew for each class that it is given, which takes much longer than the model itself.
#pragma once
#include "relacy.hpp"
//
#include <cstddef>
#include <new>
#include <type_traits>

namespace strata::model {

// What Relacy calls of a model.
class model_calls {
 public:
  virtual void construct() = 0;
  virtual void before() = 0;
  virtual void thread(unsigned self) = 0;
  virtual void after() = 0;
  virtual void destroy() = 0;

 protected:
  ~model_calls() = default;
};

template <class Model>
class calls_of final : public model_calls {
  // Relacy calls it at every step of a schedule; no model has one.
  static_assert(std::is_same_v<
                decltype(&Model::invariant),
                decltype(&rl::test_suite<Model, Model::params::static_thread_count>::invariant)>);

 public:
  void construct() override { model_ = new (memory_) Model(); }
  void before() override { model_->before(); }
  void thread(unsigned self) override { model_->thread(self); }
  void after() override { model_->after(); }
  void destroy() override { model_->~Model(); }

 private:
  // Not Relacy's memory, where each piece counts. A schedule that fails never destroys its model.
  alignas(Model) std::byte memory_[sizeof(Model)];
  Model* model_ = nullptr;
};

template <rl::thread_id_t Threads>
struct any_model : rl::test_suite<any_model<Threads>, Threads> {
  static inline model_calls* explored = nullptr;

  any_model() { explored->construct(); }
  ~any_model() { explored->destroy(); }
  void before() { explored->before(); }
  void thread(unsigned self) { explored->thread(self); }
  void after() { explored->after(); }
};

}  // namespace strata::model
