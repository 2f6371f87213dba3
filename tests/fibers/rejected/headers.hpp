// SPDX-License-Identifier: Apache-2.0
// What the files here include, precompiled once for all of their cases.
#pragma once
#include <array>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <strata/detail/address.hpp>
#include <strata/fiber.hpp>
#include <strata/fork_join.hpp>
#include <strata/grid.hpp>
#include <strata/group.hpp>
#include <strata/mailbox.hpp>
#include <strata/message.hpp>
#include <strata/remote_thread.hpp>
#include <strata/resource.hpp>
#include <strata/shared_task.hpp>
#include <strata/task_scope.hpp>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>
