// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/receive/ip_id_watch.h"

#include <algorithm>

namespace rocegw::worker {
namespace {

uint32_t Distance(uint16_t a, uint16_t b) {
  const auto ahead = static_cast<uint16_t>(a - b);
  return std::min<uint32_t>(ahead, 0x10000u - ahead);
}

size_t PlaceOf(uint32_t address) { return (address * 0x9E3779B1u) >> 24; }
static_assert(IpIdWatch::kSources == 256);

}  // namespace

IpIdWatch::IpIdWatch() : sources_(kSources) {}

uint32_t IpIdWatch::Observe(uint32_t address, uint16_t id, TimePoint now) {
  Source& source = sources_[PlaceOf(address)];
  if (source.address != address || source.runs == 0) {
    // Two sources share a slot: keep watching the one that sends all the time.
    if (source.runs != 0 && now - source.heard < kPatience) return 0;
    source = Source{};
    source.address = address;
    source.heard = now;
    Begin(source, id, now);
    return 0;
  }
  const int64_t silence = (now - source.heard).ns / 1000;
  const auto slack = static_cast<uint32_t>(kNear + std::clamp<int64_t>(silence, 0, 0x10000));
  source.heard = now;
  size_t nearest = source.newest;
  if (const Run& run = source.run[nearest]; run.alone || Distance(id, run.last) > kNear) {
    for (size_t i = 0; i < source.runs; ++i) {
      if (Distance(id, source.run[i].last) < Distance(id, source.run[nearest].last)) nearest = i;
    }
  }
  if (Distance(id, source.run[nearest].last) <= slack) {
    Follow(source, nearest, id, now);
  } else {
    Begin(source, id, now);
  }
  return source.alone != 0 && now >= source.judged ? Judge(source, now) : 0;
}

void IpIdWatch::Follow(Source& source, size_t index, uint16_t id, TimePoint now) {
  Run& run = source.run[index];
  if (run.alone) --source.alone;
  run = {id, false, now};
  source.newest = static_cast<uint8_t>(index);
}

// Starts a new run in place of the run that was seen least recently. If that one was alone, it is
// not counted.
void IpIdWatch::Begin(Source& source, uint16_t id, TimePoint now) {
  size_t index = source.runs;
  if (index == kRuns) {
    const auto oldest =
        std::min_element(source.run.begin(), source.run.end(),
                         [](const Run& a, const Run& b) { return a.heard < b.heard; });
    index = static_cast<size_t>(oldest - source.run.begin());
    if (oldest->alone) --source.alone;
  } else {
    ++source.runs;
  }
  source.run[index] = {id, true, now};
  source.newest = static_cast<uint8_t>(index);
  if (source.alone++ == 0) source.judged = now + kPatience;
}

uint32_t IpIdWatch::Judge(Source& source, TimePoint now) {
  uint32_t strays = 0;
  source.judged = kNever;
  for (size_t i = source.runs; i-- > 0;) {
    Run& run = source.run[i];
    if (!run.alone) continue;
    if (now - run.heard < kPatience) {
      source.judged = Earlier(source.judged, run.heard + kPatience);
      continue;
    }
    ++strays;
    --source.alone;
    // The last run moves to the free index. The run that was seen just now cannot be a stray, so
    // `newest` stays valid.
    --source.runs;
    run = source.run[source.runs];
    if (source.newest == source.runs) source.newest = static_cast<uint8_t>(i);
  }
  return strays;
}

}  // namespace rocegw::worker
