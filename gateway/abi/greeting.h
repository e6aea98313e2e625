/* SPDX-License-Identifier: Apache-2.0
 *
 * Flags of the greeting (rocegw_hello.flags), since minor 15.
 */
#ifndef ROCEGW_ABI_GREETING_H
#define ROCEGW_ABI_GREETING_H

enum rocegw_hello_flags {
  ROCEGW_HELLO_DEVICES = 1 /* the program has loaded CUDA, so it may register memory of GPUs */
};

#endif /* ROCEGW_ABI_GREETING_H */
