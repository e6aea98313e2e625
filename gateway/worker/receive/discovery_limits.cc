// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/receive/discovery_limits.h"

namespace rocegw::worker {
namespace {

// Discovery datagrams that the control thread is given, each second and at once. The control thread
// answers half as many questions of one address; the rest leaves space for answers.
constexpr uint32_t kAddressRate = 100;
constexpr uint32_t kAddressBurst = 128;
constexpr uint32_t kStrangersRate = 4000;
constexpr uint32_t kStrangersBurst = 1024;

}  // namespace

DiscoveryLimits::DiscoveryLimits(const SecretKey& secret)
    : of_known_(secret, kAddressRate, kAddressBurst),
      of_stranger_(secret, kAddressRate, kAddressBurst),
      of_strangers_(kStrangersRate, kStrangersBurst) {}

void DiscoveryLimits::Know(const wire::Gid& peer, bool known) {
  if (known)
    known_peers_.insert(peer);
  else
    known_peers_.erase(peer);
}

bool DiscoveryLimits::Take(const wire::Gid& source, bool member, TimePoint now) {
  if (member || known_peers_.contains(source)) return of_known_.Take(source.bytes, now);
  return of_stranger_.Take(source.bytes, now) && of_strangers_.Take(now);
}

}  // namespace rocegw::worker
