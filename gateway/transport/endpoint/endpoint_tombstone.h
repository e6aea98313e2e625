// SPDX-License-Identifier: Apache-2.0
// Tombstone of a destroyed endpoint: the replies and atomic results that it sent and that may still
// be lost. The worker rebuilds lost ones from here, so that the initiator learns what happened.
// READ responses are not kept, because the program's memory is no longer accessible. Belongs to one
// worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "gateway/base/time.h"
#include "gateway/flow/frame_ref.h"
#include "gateway/wire/channel_header.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::transport {

class EndpointTombstone {
 public:
  // Lifetime of a tombstone. An initiator gives up on a request before that.
  static constexpr Duration kAge = Seconds(10);

  // Result of an answered atomic. Its key is FrameRef's number for the result frames.
  struct Result {
    Qpn to;
    Qpn as;
    uint32_t message = 0;
    uint64_t original = 0;
  };

  EndpointTombstone(SlotHandle handle, uint8_t connection, Qpn number, Qpn group, uint32_t tenant)
      : handle_(handle), number_(number), group_(group), tenant_(tenant), connection_(connection) {}

  void Keep(uint32_t serial, const Result& result) { results_.emplace(serial, result); }
  SlotHandle handle() const { return handle_; }
  size_t results() const { return results_.size(); }
  // Rebuilds the lost frame in `frame`. Returns false if the frame was not one of this endpoint's.
  bool Answer(const flow::FrameRef& lost, wire::ChannelFrame& frame) const;
  void HandOver(hand_over::StateStream& state);

 private:
  SlotHandle handle_;  // the endpoint's former handle
  Qpn number_;
  Qpn group_;
  uint32_t tenant_;
  uint8_t connection_;
  std::unordered_map<uint32_t, Result> results_;
};

}  // namespace rocegw::transport
