// SPDX-License-Identifier: Apache-2.0
// A node whose system has no more threads for it.
#pragma once

// On that node the k-th thread from now on is refused, once; k > 0. Not with sanitizers, which
// stand in front of that call themselves.
void refuse_thread(const char* node, const char* k);
