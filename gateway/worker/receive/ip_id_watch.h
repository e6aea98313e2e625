// SPDX-License-Identifier: Apache-2.0
// Detector of damaged IPv4 packets by the IDs that were recovered from ICRCs
// (gateway/wire/crc/icrc.h). A damaged packet that passes the weaker check has a random ID, while
// the IDs of a sender run on. A sender has several sequences (one per socket, queue or queue pair),
// IDs arrive reordered and with gaps, and an idle sender's may have moved anywhere, so the class
// counts and never drops. An ID is a stray if no sequence of its source comes near it and no later
// packet follows near it. With more than kRuns sequences at a time it detects nothing. Owned by a
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
  static constexpr size_t kSources = 256;  // a power of two; further sources are not watched
  static constexpr size_t kRuns = 8;       // sequences per source
  static constexpr uint16_t kNear = 256;   // plus one for each microsecond of silence
  static constexpr Duration kPatience = Seconds(1);  // time after which a lone ID is a stray

  IpIdWatch();

  // Records the ID of a packet of an IPv4 source. Returns how many earlier packets of that source
  // were found to be strays.
  uint32_t Observe(uint32_t source, uint16_t id, TimePoint now);

 private:
  struct Run {
    uint16_t last = 0;
    bool alone = false;  // no packet has followed near it
    TimePoint heard;
  };
  struct Source {
    uint32_t address = 0;
    uint8_t runs = 0;
    uint8_t alone = 0;   // number of runs that are alone
    uint8_t newest = 0;  // run that was seen last
    TimePoint heard;
    TimePoint judged;  // time at which the oldest lone run becomes a stray
    std::array<Run, kRuns> run;
  };

  static void Follow(Source& source, size_t index, uint16_t id, TimePoint now);
  static void Begin(Source& source, uint16_t id, TimePoint now);
  static uint32_t Judge(Source& source, TimePoint now);

  std::vector<Source> sources_;
};

}  // namespace rocegw::worker
