// SPDX-License-Identifier: Apache-2.0
// Run of an XDP program by the kernel on one frame (BPF_PROG_TEST_RUN), without an interface.
#pragma once

#include <cstdint>
#include <span>

namespace rocegw::testing {

// Returns the program's verdict (XDP_PASS, XDP_REDIRECT), or -errno.
int RunXdpProgram(int program, std::span<const uint8_t> frame, uint32_t receive_queue);

}  // namespace rocegw::testing
