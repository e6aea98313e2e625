// SPDX-License-Identifier: Apache-2.0
// Names of a worker's channels and staged carriers in the state of its queue pairs
// (flow/carrier_names.h). Belongs to the caller of Worker::HandOver.
#pragma once

#include "gateway/channel/channel_set.h"
#include "gateway/flow/carrier_names.h"
#include "gateway/worker/channels/staged_frames.h"

namespace rocegw::worker {

class WorkerCarriers final : public flow::CarrierNames {
 public:
  // The arguments must outlive the object.
  WorkerCarriers(channel::ChannelSet& channels, StagedFrames& staged)
      : channels_(channels), staged_(staged) {}

  uint64_t NameOf(const flow::Carrier& carrier) override {
    const uint32_t index = carrier.staged_index();
    return index == flow::Carrier::kNotStaged ? carrier.number().value : kStaged | index;
  }
  flow::Carrier* Find(uint64_t name) override {
    if ((name & kStaged) != 0) return staged_.FindByIndex(name & ~kStaged);
    return name >> 24 == 0 ? channels_.Find(Qpn{static_cast<uint32_t>(name)}) : nullptr;
  }

 private:
  static constexpr uint64_t kStaged = uint64_t{1} << 32;

  channel::ChannelSet& channels_;
  StagedFrames& staged_;
};

}  // namespace rocegw::worker
