/* SPDX-License-Identifier: Apache-2.0 */
/* errno of the thread that asks, also after a wait that ended on another OS thread: see strata_errno_location(). */
#pragma GCC system_header
#include_next <errno.h>
#if !defined STRATA_SHIM_ERRNO_H && !defined __ASSEMBLER__
#define STRATA_SHIM_ERRNO_H
#ifdef __cplusplus
extern "C"
#endif
int* strata_errno_location(void);
#undef errno
#define errno (*strata_errno_location())
#endif
