// SPDX-License-Identifier: Apache-2.0
#include "gateway/take_over/messages.h"

#include <type_traits>

#include "gateway/hand_over/state_stream.h"

namespace rocegw::take_over {
namespace {

using hand_over::StateStream;

constexpr uint32_t kMostText = 4096;
constexpr uint32_t kMostShape = 256;

// Wrong input reads as "too long" before anything is allocated.
void Text(StateStream& stream, std::string& text) {
  if (!stream.reading() && text.size() > kMostText) text.resize(kMostText);
  const uint32_t length = stream.Count(text.size(), kMostText);
  text.resize(length);
  stream.Bytes({reinterpret_cast<uint8_t*>(text.data()), text.size()});
}

template <typename E>
void Number(StateStream& stream, E& value) {
  value = static_cast<E>(stream.Carry(static_cast<std::underlying_type_t<E>>(value)));
}

void Fields(StateStream& stream, Hello& hello) {
  stream(hello.protocol);
  // The rest of another protocol's HELLO is not understood.
  if (hello.protocol != kProtocol) return;
  Text(stream, hello.version);
  hello.versions.HandOver(stream);
  stream.Vector(hello.shape, kMostShape, [&](std::string& line) { Text(stream, line); });
}
void Fields(StateStream& stream, Refuse& refuse) {
  Number(stream, refuse.refusal);
  Text(stream, refuse.text);
}
void Fields(StateStream& stream, Offer& offer) {
  Text(stream, offer.version);
  offer.descriptors = stream.Carry(offer.descriptors, static_cast<uint32_t>(kMostFds));
}
void Fields(StateStream& stream, Descriptors& descriptors) {
  stream.Vector(descriptors.labels, kMostFdsInMessage, [&](Descriptors::Label& label) {
    Number(stream, label.kind);
    Text(stream, label.name);
  });
}
void Fields(StateStream& stream, Serving& serving) { stream(serving.blackout); }
void Fields(StateStream& /*stream*/, Prepared& /*message*/) {}
void Fields(StateStream& /*stream*/, State& /*message*/) {}
void Fields(StateStream& /*stream*/, Ready& /*message*/) {}
void Fields(StateStream& /*stream*/, Commit& /*message*/) {}

template <size_t... I>
std::optional<Message> Make(size_t type, std::index_sequence<I...> /*types*/) {
  std::optional<Message> message;
  ((type == I ? (void)message.emplace(std::in_place_index<I>) : (void)0), ...);
  return message;
}

}  // namespace

std::vector<uint8_t> Encode(const Message& message) {
  std::vector<uint8_t> bytes;
  const hand_over::StateVersions own;
  StateStream stream(bytes, TimePoint(), own);
  auto type = static_cast<uint8_t>(message.index());
  stream(type);
  Message copy = message;
  std::visit([&](auto& body) { Fields(stream, body); }, copy);
  return bytes;
}

std::optional<Message> Decode(std::span<const uint8_t> bytes) {
  StateStream stream(bytes, TimePoint());
  uint8_t type = 0;
  stream(type);
  std::optional<Message> message =
      Make(type, std::make_index_sequence<std::variant_size_v<Message>>());
  if (!stream.ok() || !message) return std::nullopt;
  std::visit([&](auto& body) { Fields(stream, body); }, *message);
  const auto* const hello = std::get_if<Hello>(&*message);
  const bool understood = hello == nullptr || hello->protocol == kProtocol;
  if (!stream.ok() || (understood && !stream.at_end())) return std::nullopt;
  return message;
}

}  // namespace rocegw::take_over
