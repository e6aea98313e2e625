// SPDX-License-Identifier: Apache-2.0
// Cookies that prove the address of a peer that opens a channel, without state for it: a cookie is
// a keyed hash of what the opening says and of the time, sent to the address that the opening
// names. Whoever repeats it receives packets at that address (as QUIC's Retry, RFC 9000 8.1.2).
// Pure.
#pragma once

#include <cstdint>

#include "gateway/base/secret_sequence.h"
#include "gateway/base/time.h"
#include "gateway/wire/channel_header.h"
#include "gateway/wire/gid.h"

namespace rocegw::channel {

class OpenCookies {
 public:
  OpenCookies() = default;
  explicit OpenCookies(const SecretKey& key) : key_(key) {}

  // Returns the cookie for an opening that came from `source` to `destination`; never 0.
  uint32_t Make(const wire::Gid& source, const wire::Gid& destination,
                const wire::ChannelControl& open, TimePoint now) const;
  // Returns true if the opening repeats a cookie that was made within the last kPeriod, or somewhat
  // longer ago.
  bool IsProven(const wire::Gid& source, const wire::Gid& destination,
                const wire::ChannelControl& open, TimePoint now) const;

 private:
  // Longer than an opener repeats its opening (channel.h: 0.3 s).
  static constexpr Duration kPeriod = Seconds(4);

  uint32_t Of(const wire::Gid& source, const wire::Gid& destination,
              const wire::ChannelControl& open, int64_t period) const;

  SecretKey key_{};
};

}  // namespace rocegw::channel
