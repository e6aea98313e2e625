// SPDX-License-Identifier: Apache-2.0
// A client that sends whatever the input says, after a correct greeting or none. Input: one byte of
// options (bit 0: greet; bit 1: workers answer only at the end), then messages, each a byte for the
// type, two for the length of the body (little endian), and the body; a type of 255 sends the body
// as it is, header included. Whatever comes, the session server must stay whole: no rule of the
// workers broken, nothing left when the client is gone.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "tests/support/session/session_host.h"

namespace {

using rocegw::testing::SessionHost;
using rocegw::testing::TestClient;

constexpr uint8_t kRaw = 255;
constexpr size_t kMostMessages = 64;

void Check(bool good) {
  if (!good) std::abort();
}

rocegw::session::Options Small() {
  rocegw::session::Options options;
  options.limits.segment_bytes = uint64_t{64} << 20;
  options.device.max_cqe = 4096;
  return options;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // One host for all inputs: nothing of a client may outlive it.
  static auto* const host = new SessionHost(2, Small());
  if (size == 0) return 0;
  std::span<const uint8_t> input(data, size);
  const uint8_t options = input[0];
  input = input.subspan(1);
  {
    TestClient client(*host);
    if ((options & 1) != 0) Check(client.Hello());
    for (size_t n = 0; n < kMostMessages && input.size() >= 3; ++n) {
      const uint8_t type = input[0];
      const size_t length = std::min<size_t>(input[1] | input[2] << 8, input.size() - 3);
      std::vector<uint8_t> message;
      if (type != kRaw) {
        const rocegw_request header{type, static_cast<uint32_t>(sizeof header + length), n};
        message.resize(sizeof header);
        std::memcpy(message.data(), &header, sizeof header);
      }
      message.insert(message.end(), input.begin() + 3,
                     input.begin() + 3 + static_cast<ptrdiff_t>(length));
      input = input.subspan(3 + length);
      client.SendRaw(message);
      host->RunControl();
      if ((options & 2) == 0) host->Settle();
      while (client.Receive()) {
      }
    }
  }
  host->Settle();
  host->workers[0]->mads.clear();
  host->log.clear();
  Check(host->server->session_count() == 0);
  Check(host->LinkedObjects() == 0);
  Check(host->BrokenRules().empty());
  for (size_t i = 0; i < static_cast<size_t>(rocegw::session::Resource::kCount); ++i) {
    Check(host->server->services().pools.gateway().used(
              static_cast<rocegw::session::Resource>(i)) == 0);
  }
  return 0;
}
