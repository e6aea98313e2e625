// SPDX-License-Identifier: Apache-2.0
#include "gateway/channel/acceptor/open_cookies.h"

#include "gateway/wire/byte_order.h"

namespace rocegw::channel {

uint32_t OpenCookies::Of(const wire::Gid& source, const wire::Gid& destination,
                         const wire::ChannelControl& open, int64_t period) const {
  SipState state(key_);
  for (const wire::Gid* gid : {&source, &destination}) {
    state.Absorb(wire::LoadBe64(gid->bytes.data()));
    state.Absorb(wire::LoadBe64(gid->bytes.data() + 8));
  }
  state.Absorb(uint64_t{open.channel} << 32 | open.epoch);
  state.Absorb(uint64_t{open.instance} << 32 | open.worker);
  const auto hash = static_cast<uint32_t>(state.Finish(static_cast<uint64_t>(period)));
  return hash == 0 ? 1 : hash;
}

uint32_t OpenCookies::Make(const wire::Gid& source, const wire::Gid& destination,
                           const wire::ChannelControl& open, TimePoint now) const {
  return Of(source, destination, open, now.ns / kPeriod.ns);
}

bool OpenCookies::IsProven(const wire::Gid& source, const wire::Gid& destination,
                           const wire::ChannelControl& open, TimePoint now) const {
  if (open.peer_epoch == 0) return false;
  const int64_t period = now.ns / kPeriod.ns;
  return open.peer_epoch == Of(source, destination, open, period) ||
         open.peer_epoch == Of(source, destination, open, period - 1);
}

}  // namespace rocegw::channel
