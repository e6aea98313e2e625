// SPDX-License-Identifier: Apache-2.0
#include "tests/support/network/xdp_test_run.h"

#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace rocegw::testing {
namespace {

constexpr uint32_t kTestInterface = 1;

uint64_t AddressOf(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

}  // namespace

int RunXdpProgram(int program, std::span<const uint8_t> frame, uint32_t receive_queue) {
  xdp_md context{};
  context.data_end = static_cast<uint32_t>(frame.size());
  context.ingress_ifindex = kTestInterface;
  context.rx_queue_index = receive_queue;
  std::array<uint8_t, 4096> out;
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  attributes.test.prog_fd = static_cast<uint32_t>(program);
  attributes.test.data_in = AddressOf(frame.data());
  attributes.test.data_size_in = static_cast<uint32_t>(frame.size());
  attributes.test.data_out = AddressOf(out.data());
  attributes.test.data_size_out = out.size();
  attributes.test.ctx_in = AddressOf(&context);
  attributes.test.ctx_size_in = sizeof context;
  if (::syscall(SYS_bpf, BPF_PROG_TEST_RUN, &attributes, sizeof attributes) != 0) return -errno;
  return static_cast<int>(attributes.test.retval);
}

}  // namespace rocegw::testing
