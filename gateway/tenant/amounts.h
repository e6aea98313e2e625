// SPDX-License-Identifier: Apache-2.0
// Units of quotas: countable objects and held bytes (resources), and events per second (rates).
// Names are those of the fields of types.v1.Limits, so that refusals, metrics and operators' files
// use the same words. Plain values, any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rocegw::tenant {

enum class Resource : uint8_t {
  kSessions,
  kPds,
  kCqs,
  kQps,
  kSrqs,
  kMrs,
  kAhs,
  kCmIds,
  kListeners,
  kChannels,
  kRegisteredBytes,
  kSegmentBytes,
  kDescriptors,
  kHeapBytes,
  kRemappedBytes,
  kCount,
};
inline constexpr size_t kResources = static_cast<size_t>(Resource::kCount);

enum class Rate : uint8_t {
  kConnects,
  kBytes,
  kPackets,
  kCount,
};
inline constexpr size_t kRates = static_cast<size_t>(Rate::kCount);

inline constexpr std::array<std::string_view, kResources> kResourceNames = {"sessions",
                                                                            "pds",
                                                                            "cqs",
                                                                            "qps",
                                                                            "srqs",
                                                                            "mrs",
                                                                            "ahs",
                                                                            "cm_ids",
                                                                            "listeners",
                                                                            "channels",
                                                                            "registered_bytes",
                                                                            "segment_bytes",
                                                                            "descriptors",
                                                                            "heap_bytes",
                                                                            "remapped_bytes"};
inline constexpr std::array<std::string_view, kRates> kRateNames = {
    "connects_per_second", "bytes_per_second", "packets_per_second"};

inline constexpr std::string_view NameOf(Resource resource) {
  return kResourceNames[static_cast<size_t>(resource)];
}
inline constexpr std::string_view NameOf(Rate rate) {
  return kRateNames[static_cast<size_t>(rate)];
}

// Returns true for resources of the daemon's process as a whole: a pool that takes all of them
// stops the others, however few objects they need. Beyond its committed amount, a pool holds at
// most kDaemonShare times what is free in the gateway (the dynamic threshold of Choudhury and
// Hahne, IEEE/ACM ToN 1998), so greedy pools together always leave a part for others.
constexpr bool IsOfDaemon(Resource resource) {
  return resource == Resource::kDescriptors || resource == Resource::kHeapBytes;
}
inline constexpr uint64_t kDaemonShare = 4;

inline constexpr uint64_t kUnlimited = UINT64_MAX;

// Number for each resource and rate.
struct Amounts {
  std::array<uint64_t, kResources> held{};
  std::array<uint64_t, kRates> rates{};

  static constexpr Amounts Of(uint64_t value) {
    Amounts amounts;
    amounts.held.fill(value);
    amounts.rates.fill(value);
    return amounts;
  }
  constexpr uint64_t& operator[](Resource resource) { return held[static_cast<size_t>(resource)]; }
  constexpr uint64_t operator[](Resource resource) const {
    return held[static_cast<size_t>(resource)];
  }
  constexpr uint64_t& operator[](Rate rate) { return rates[static_cast<size_t>(rate)]; }
  constexpr uint64_t operator[](Rate rate) const { return rates[static_cast<size_t>(rate)]; }
  bool operator==(const Amounts&) const = default;
};

// Limits of a pool or tenant. The committed amount is always admitted; up to the peak, first come,
// first served.
struct Quota {
  Amounts committed;
  Amounts peak = Amounts::Of(kUnlimited);
  bool operator==(const Quota&) const = default;
};

}  // namespace rocegw::tenant
