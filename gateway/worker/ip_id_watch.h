// SPDX-License-Identifier: Apache-2.0
// Watches the IPv4 IDs that were recovered from ICRCs (gateway/wire/icrc.h) for ones that nobody
// sent: a damaged packet that passes the weaker check does so with a random ID, while a sender's
// IDs run on. A sender has several sequences (one per socket, queue or queue pair), IDs come out of
// order and with gaps, and a quiet sender's may have moved anywhere, so this counts and never
// drops: an ID is stray when none of its source's sequences comes near it, and no other packet
// follows near it either. With more sequences at a time than kRuns it sees nothing. Owned by a
// worker; bounded memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gateway/base/time.h"

namespace rocegw::worker {

class IpIdWatch {
 public:
  static constexpr size_t kSources = 256;  // a power of two; others are not watched meanwhile
  static constexpr size_t kRuns = 8;       // sequences per source
  static constexpr uint16_t kNear = 256;   // and one more for each microsecond of silence
  static constexpr Duration kPatience = Seconds(1);  // how long a lone ID may stay without others

  IpIdWatch();

  // A packet of an IPv4 source came with this ID. Returns how many earlier packets of that source
  // have turned out to be strays.
  uint32_t Observe(uint32_t source, uint16_t id, TimePoint now);

 private:
  struct Run {
    uint16_t last = 0;
    bool alone = false;  // nothing near has followed yet
    TimePoint heard;
  };
  struct Source {
    uint32_t address = 0;
    uint8_t runs = 0;
    uint8_t alone = 0;   // of these
    uint8_t newest = 0;  // the run heard last
    TimePoint heard;
    TimePoint judged;  // when the oldest lone run has been alone for long enough
    std::array<Run, kRuns> run;
  };

  static void Follow(Source& source, size_t index, uint16_t id, TimePoint now);
  static void Begin(Source& source, uint16_t id, TimePoint now);
  static uint32_t Judge(Source& source, TimePoint now);

  std::vector<Source> sources_;
};

}  // namespace rocegw::worker
