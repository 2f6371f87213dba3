/* SPDX-License-Identifier: Apache-2.0 */
/* See pthread.h beside this. */
#pragma GCC system_header
#include_next <semaphore.h>
#if !defined __cplusplus || !defined _GLIBCXX_SEMAPHORE_BASE_H
#include <pthread.h>
#endif
