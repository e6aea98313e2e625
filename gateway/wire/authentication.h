// SPDX-License-Identifier: Apache-2.0
// Authentication tags of channel control packets and discovery MADs. A valid tag proves that a
// holder of the fleet's key made the message: SipHash-2-4 with a 128-bit key and a 64-bit tag. The
// tag covers both addresses and every byte of the message except itself, so a message cannot be
// changed or sent under other addresses. Replays are detected by epochs and sequence numbers
// (channel/replay_window.h) or by the MAD's transaction ID. Bytes: docs/develop/wire_format.md.
// Pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "gateway/base/ids.h"
#include "gateway/base/secret_sequence.h"
#include "gateway/wire/gid.h"
#include "gateway/wire/mad.h"

namespace rocegw::wire {

// Writes the tag into the last eight bytes of `body`, a control packet that EncodeControl wrote
// with `tagged`. `to`: the destination QPN of the BTH.
void SealControl(const SecretKey& key, const Gid& source, const Gid& destination, Qpn to,
                 std::span<uint8_t> body);
// Returns true if one of the keys made the tag of `body`, a control packet with `tagged`.
bool IsAuthentic(std::span<const SecretKey> keys, const Gid& source, const Gid& destination, Qpn to,
                 std::span<const uint8_t> body);

// Marks a discovery MAD that EncodeGatewayMad wrote as tagged and writes its tag.
void SealGatewayMad(const SecretKey& key, const Gid& source, const Gid& destination,
                    std::span<uint8_t, kMadLength> mad);
bool IsAuthenticMad(std::span<const SecretKey> keys, const Gid& source, const Gid& destination,
                    std::span<const uint8_t> mad);

}  // namespace rocegw::wire
