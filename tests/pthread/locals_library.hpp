// SPDX-License-Identifier: Apache-2.0
#pragma once

// The calling thread's; 40 at first.
long* count_of_library();
