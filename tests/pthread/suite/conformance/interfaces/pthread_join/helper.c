/* SPDX-License-Identifier: Apache-2.0
   No program: part of others. */
