/* SPDX-License-Identifier: Apache-2.0
   Is not built. */
#include "there_is_no_such_header.h"
