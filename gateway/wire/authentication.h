// SPDX-License-Identifier: Apache-2.0
// Tags by which a gateway knows that a control packet of a channel, or a discovery MAD, was made by
// a holder of the fleet's key: SipHash-2-4 with a key of 128 bits and a tag of 64 bits. The tag
// covers both addresses and every byte of the message but the tag itself, so that a message cannot
// be changed or sent again under other addresses. What is sent again unchanged is told by epochs
// and sequence (channel/replay_window.h) or by the transaction ID of the MAD. Byte by byte in
// docs/develop/wire_format.md. Pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "gateway/base/ids.h"
#include "gateway/base/secret_sequence.h"
#include "gateway/wire/gid.h"
#include "gateway/wire/mad.h"

namespace rocegw::wire {

// `body`: what EncodeControl wrote for a control packet with `tagged`; its last eight bytes become
// the tag. `to`: the destination QPN of the BTH.
void SealControl(const SecretKey& key, const Gid& source, const Gid& destination, Qpn to,
                 std::span<uint8_t> body);
// Whether one of the keys made the tag of `body`, a control packet with `tagged`.
bool IsAuthentic(std::span<const SecretKey> keys, const Gid& source, const Gid& destination, Qpn to,
                 std::span<const uint8_t> body);

// Of a discovery MAD that EncodeGatewayMad wrote: marks it as tagged and writes the tag.
void SealGatewayMad(const SecretKey& key, const Gid& source, const Gid& destination,
                    std::span<uint8_t, kMadLength> mad);
bool IsAuthenticMad(std::span<const SecretKey> keys, const Gid& source, const Gid& destination,
                    std::span<const uint8_t> mad);

}  // namespace rocegw::wire
