// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/flood_filter.h"

#include <algorithm>

#include "gateway/port/steering.h"
#include "gateway/wire/byte_order.h"
#include "gateway/wire/gateway_mad.h"

namespace rocegw::port {
namespace {

static_assert(FloodFilter::kBuckets == size_t{1} << (32 - FloodFilter::kBucketShift));

bool AllPass(std::span<const PassShare> shares) {
  return std::ranges::all_of(shares, [](PassShare share) { return share == kAllPass; });
}

}  // namespace

FloodKind KindOf(std::span<const uint8_t> datagram) {
  if (DestinationQpn(datagram) != kGsiQpn) return FloodKind::kOther;
  if (datagram.size() <= kMadClassAt) return FloodKind::kConnection;
  return wire::IsVendorClass(datagram[kMadClassAt]) ? FloodKind::kDiscovery
                                                    : FloodKind::kConnection;
}

void FloodFilter::Know(const wire::Gid& source) {
  const size_t size = source.IsV4() ? 1 : 4;
  if (size > room_) return;
  room_ -= size;
  known_.insert(std::ranges::upper_bound(known_, source), source);
}

size_t FloodFilter::BucketOf(const wire::Gid& source) const {
  uint32_t word = 0;
  if (source.IsV4()) {
    word = source.V4();
  } else {
    for (size_t i = 0; i < source.bytes.size(); i += 4)
      word ^= wire::LoadBe32(source.bytes.data() + i);
  }
  return word * multiplier >> kBucketShift;
}

bool FloodFilter::IsKnown(const wire::Gid& source) const {
  return std::ranges::binary_search(known_, source);
}

bool FloodFilter::empty() const {
  return AllPass(of_known) &&
         std::ranges::all_of(of_strangers, [](const auto& shares) { return AllPass(shares); });
}

PassShare FloodFilter::ShareOf(const wire::Gid& source, FloodKind kind) const {
  const auto index = static_cast<size_t>(kind);
  return IsKnown(source) ? of_known[index] : of_strangers[index][BucketOf(source)];
}

}  // namespace rocegw::port
