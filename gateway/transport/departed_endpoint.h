// SPDX-License-Identifier: Apache-2.0
// What an endpoint that has ended has said last: answers that left, and may be lost on their way.
// Who asked is told again what happened, although nobody is there any more. What READs bring is
// not kept: the memory was its program's. Belongs to one worker.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "gateway/base/time.h"
#include "gateway/flow/frame_ref.h"
#include "gateway/wire/channel_header.h"

namespace rocegw::transport {

class DepartedEndpoint {
 public:
  // So long it is remembered: whoever asked has given up by then.
  static constexpr Duration kAge = Seconds(10);

  // An atomic that was answered, by the number that its frames have in their FrameRef.
  struct Result {
    Qpn to;
    Qpn as;
    uint32_t message = 0;
    uint64_t original = 0;
  };

  DepartedEndpoint(SlotHandle handle, uint8_t connection, Qpn number, Qpn group, uint32_t tenant)
      : handle_(handle), number_(number), group_(group), tenant_(tenant), connection_(connection) {}

  void Keep(uint32_t serial, const Result& result) { results_.emplace(serial, result); }
  SlotHandle handle() const { return handle_; }
  // The frame that was lost, as it was; false: it was none of those.
  bool Answer(const flow::FrameRef& lost, wire::ChannelFrame& frame) const;

 private:
  SlotHandle handle_;  // that it had
  Qpn number_;
  Qpn group_;
  uint32_t tenant_;
  uint8_t connection_;
  std::unordered_map<uint32_t, Result> results_;
};

}  // namespace rocegw::transport
