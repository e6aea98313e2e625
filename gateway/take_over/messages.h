// SPDX-License-Identifier: Apache-2.0
// Messages between the running gateway and the process that replaces it, one per datagram of a
// seqpacket socket. In order: HELLO (new), OFFER, DESCRIPTORS and STATE that does not change (old),
// PREPARED (new), DESCRIPTORS that came since and STATE that changes (old), READY (new), COMMIT
// (old), SERVING (new). REFUSE ends the take-over from either side. Input is foreign: lengths and
// counts are bounded. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "gateway/base/inherited_fds.h"
#include "gateway/base/time.h"
#include "gateway/hand_over/state_versions.h"
#include "gateway/take_over/refusal.h"

namespace rocegw::take_over {

// Version of this protocol. Both sides must have the same one; new kinds of descriptors and of
// state need no new version.
inline constexpr uint16_t kProtocol = 2;
// Largest message in bytes.
inline constexpr size_t kMostBytes = 48 << 10;
// Limit of descriptors in one message: below SCM_MAX_FD of Linux.
inline constexpr size_t kMostFdsInMessage = 64;
// Limit of descriptors of a take-over.
inline constexpr size_t kMostFds = 1 << 20;

struct Hello {
  uint16_t protocol = kProtocol;
  std::string version;  // version of the program, for display
  hand_over::StateVersions versions;
  // Properties that both processes must share, a line each: "workers: 2".
  std::vector<std::string> shape;
};
struct Refuse {
  Refusal refusal = Refusal::kProtocol;
  std::string text;  // details, one line
};
struct Offer {
  std::string version;       // version of the program, for display
  uint32_t descriptors = 0;  // number of those before the first STATE
};
// The message carries as many descriptors as labels, in the same order.
struct Descriptors {
  struct Label {
    FdKind kind = FdKind::kRuntimeLock;
    std::string name;
  };
  std::vector<Label> labels;
};
struct Prepared {};
// The state is in the file that came last with DESCRIPTORS (state_file.h).
struct State {};
struct Ready {};
struct Commit {};
struct Serving {
  Duration blackout;
};

using Message =
    std::variant<Hello, Refuse, Offer, Descriptors, Prepared, State, Ready, Commit, Serving>;

std::vector<uint8_t> Encode(const Message& message);
// Returns nothing for malformed input.
std::optional<Message> Decode(std::span<const uint8_t> bytes);

}  // namespace rocegw::take_over
