// SPDX-License-Identifier: Apache-2.0
// A task: what queues hold and workers run. It says nothing of who waits for it or what it carries;
// the types that derive from it do.
#pragma once

namespace strata::detail {

class worker;
struct task;
struct wire_type;

// One constant object for each kind of task. Its address is the code's identity within one
// executable.
struct task_type {
  // Called by a worker's dispatcher, on the worker's own stack, after the task has left every
  // queue. The task may destroy itself.
  void (*run)(task&, worker&);
  // For tasks that own a stack: what `run` calls once it is on that stack. Null for tasks that need
  // none.
  void (*body)(task&);
  // Given up unrun, after the computation it belongs to has failed. Null: nothing to release.
  void (*abandon)(task&, worker&);
  // For people: overflow messages, statistics.
  const char* (*name)();
  // How it travels to another node; null: it stays here.
  const wire_type* wire = nullptr;
};

struct task {
  const task_type* type;
};

// "fib" out of a compiler's spelling of a function template's parameter; computed only when a
// person is going to read it.
template <class T>
const char* type_name() {
  return __PRETTY_FUNCTION__;
}

}  // namespace strata::detail
