// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/oracle/shared_inbox.h"

#include <cstdlib>

namespace rocegw::sim {
namespace {

testing::SharedOptions OptionsOf(const SharedInbox::Config& config) {
  testing::SharedOptions options;
  options.entries = config.receives;
  options.max_sge = 2;
  options.payload_stride = config.payload_stride;
  return options;
}

}  // namespace

SharedInbox::SharedInbox(Host& host, Arena& arena, uint64_t base, const Config& config,
                         Random random)
    : host_(host),
      arena_(arena),
      base_(base),
      config_(config),
      random_(random),
      end_(OptionsOf(config)) {
  if (host.Call(0, {0, worker::LinkSrq{end_.Srq()}}).error != 0) std::abort();
  for (uint32_t buffer = config.receives; buffer != 0; --buffer) free_.push_back(buffer - 1);
}

void SharedInbox::Post(uint32_t late) {
  while (!free_.empty() && random_.Below(100) >= late) {
    const uint32_t buffer = free_.back();
    const uint64_t at = Host::kBase + At(buffer);
    const auto first = static_cast<uint32_t>(random_.Below(config_.max_length + 1));
    if (!end_.PostReceive(ids_, {{at, first, host_.key()},
                                 {at + first, config_.max_length - first, host_.key()}})) {
      return;
    }
    free_.pop_back();
    posted_[ids_++] = buffer;
  }
}

std::optional<uint64_t> SharedInbox::Take(const rocegw_cqe& cqe) {
  const auto found = posted_.find(cqe.wr_id);
  if (found == posted_.end()) return std::nullopt;
  const uint32_t buffer = found->second;
  posted_.erase(found);
  free_.push_back(buffer);
  end_.Free(cqe.ring_slot);
  return At(buffer);
}

void SharedInbox::Clear(uint64_t at) { arena_.Write(at, config_.max_length, Mix(ids_), 0); }

}  // namespace rocegw::sim
