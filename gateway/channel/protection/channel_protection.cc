// SPDX-License-Identifier: Apache-2.0
#include "gateway/channel/protection/channel_protection.h"

#include <algorithm>
#include <cstring>

#include "gateway/wire/byte_order.h"

namespace rocegw::channel {

using metrics::DropReason;

namespace {

// Input of the key derivation: what it is for, then sender and receiver. Numbers have fixed places,
// so two directions or two channels never give the same bytes.
constexpr char kPurpose[] = "rocegw channel 1";
constexpr size_t kPurposeLength = sizeof kPurpose - 1;
constexpr size_t kGidBytes = 16;
constexpr size_t kInfoLength = kPurposeLength + 2 * (kGidBytes + 8);

uint8_t* PutEnd(uint8_t* at, const wire::Gid& address, Qpn number, uint32_t epoch) {
  std::memcpy(at, address.bytes.data(), kGidBytes);
  wire::StoreBe32(at + kGidBytes, number.value);
  wire::StoreBe32(at + kGidBytes + 4, epoch);
  return at + kGidBytes + 8;
}

}  // namespace

void ChannelProtection::Agree(Qpn number, uint32_t epoch, const wire::SealOffer& offer) {
  peer_number_ = number;
  peer_epoch_ = epoch;
  peer_offer_ = offer;
  agreed_ = true;
  encrypts_ = ends_.offer.encrypts || offer.encrypts;
}

std::unique_ptr<FrameKey> ChannelProtection::Derive(const FleetKeys& keys, const SecretKey& key,
                                                    bool out) const {
  std::array<uint8_t, 2 * wire::kSaltLength> salt;
  std::array<uint8_t, kInfoLength> info;
  std::memcpy(info.data(), kPurpose, kPurposeLength);
  uint8_t* at = info.data() + kPurposeLength;
  const auto put = [&](bool own, size_t place) {
    const wire::SealOffer& from = own ? ends_.offer : peer_offer_;
    std::copy(from.salt.begin(), from.salt.end(), salt.data() + place * wire::kSaltLength);
    at = own ? PutEnd(at, ends_.source, ends_.number, ends_.epoch)
             : PutEnd(at, ends_.peer, peer_number_, peer_epoch_);
  };
  put(out, 0);
  put(!out, 1);
  return keys.ciphers == nullptr ? nullptr : keys.ciphers->Derive(key, salt, info);
}

bool ChannelProtection::Seal(const FleetKeys& keys, port::TxPacket& packet) {
  if (!agreed_ || !keys.active()) return false;
  const uint32_t id = KeyIdOf(keys.signer());
  if (out_.key == nullptr || out_.id != id) out_ = {id, Derive(keys, keys.signer(), true)};
  if (out_.key == nullptr) return false;
  const wire::SealTrailer trailer{.encrypted = encrypts_,
                                  .epoch = static_cast<uint16_t>(peer_epoch_),
                                  .channel = ends_.number,
                                  .key_id = id,
                                  .sequence = ++sequence_};
  const size_t length = packet.length;
  const wire::SealHeader header = wire::BeginSeal(packet.path, trailer, packet.data, length);
  packet.length = static_cast<uint32_t>(length + wire::kSealLength);
  const std::span<uint8_t, FrameKey::kTagLength> tag(
      packet.data + packet.length - FrameKey::kTagLength, FrameKey::kTagLength);
  return out_.key->Seal(trailer.sequence, header,
                        {packet.data + wire::kBthLength, length - wire::kBthLength}, encrypts_,
                        tag);
}

// Returns the key with that number of the fleet; nullptr: there is none. Keys that the fleet does
// not have any more make room for others.
FrameKey* ChannelProtection::KeyFor(const FleetKeys& keys, uint32_t id) {
  const SecretKey* of_fleet = nullptr;
  for (const SecretKey& key : keys.verifiers())
    if (KeyIdOf(key) == id) of_fleet = &key;
  if (of_fleet == nullptr) return nullptr;
  for (const Derived& derived : in_)
    if (derived.key != nullptr && derived.id == id) return derived.key.get();
  const auto unused = [&](const Derived& derived) {
    return derived.key == nullptr ||
           std::ranges::none_of(keys.verifiers(),
                                [&](const SecretKey& key) { return KeyIdOf(key) == derived.id; });
  };
  // There are as many places as keys of the fleet, and this one has none yet.
  const auto place = std::ranges::find_if(in_, unused);
  if (place == in_.end()) return nullptr;
  *place = {id, Derive(keys, *of_fleet, false)};
  return place->key.get();
}

DropReason ChannelProtection::Open(const FleetKeys& keys, const wire::SealedParts& parts,
                                   uint8_t* plain) {
  const wire::SealTrailer& trailer = parts.trailer;
  if (trailer.encrypted != encrypts_) return DropReason::k_channel_seal;
  if (!taken_.IsNew(trailer.sequence)) return DropReason::k_channel_old;
  FrameKey* const key = KeyFor(keys, trailer.key_id);
  if (key == nullptr) return DropReason::k_channel_key;
  if (!key->Open(trailer.sequence, parts.header, parts.content,
                 parts.tag.first<FrameKey::kTagLength>(), encrypts_ ? plain : nullptr)) {
    return DropReason::k_channel_seal;
  }
  taken_.Take(trailer.sequence);
  last_id_ = trailer.key_id;
  return DropReason::kNone;
}

SealSnapshot ChannelProtection::Snapshot() const {
  return {.encrypted = encrypts_, .tx_key_id = out_.id, .rx_key_id = last_id_};
}

}  // namespace rocegw::channel
