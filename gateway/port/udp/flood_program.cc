// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/udp/flood_program.h"

#include <netinet/udp.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "gateway/wire/byte_order.h"
#include "gateway/wire/gateway_mad.h"

namespace rocegw::port {
namespace {

constexpr uint32_t kAccept = UINT32_MAX;  // bytes to keep
constexpr uint32_t kDrop = 0;
// The program sees the UDP header first, and reaches the IP header from its own offset.
constexpr uint32_t kQpnAt = sizeof(udphdr) + 4;
constexpr uint32_t kClassAt = sizeof(udphdr) + kMadClassAt;
constexpr auto kIpAt = static_cast<uint32_t>(SKF_NET_OFF);
constexpr uint32_t kIpv4SourceAt = kIpAt + 12;
constexpr uint32_t kIpv6SourceAt = kIpAt + 8;
constexpr auto kRandom = static_cast<uint32_t>(SKF_AD_OFF + SKF_AD_RANDOM);
constexpr uint32_t kBucketCell = 0;  // scratch memory
constexpr size_t kWordsOfIpv6 = 4;

// Writes the program. Conditional jumps reach 255 instructions only, so they skip at most the
// unconditional one behind them, whose target is set when it is known.
class Writer {
 public:
  void Load(uint32_t at) { Add(BPF_LD | BPF_W | BPF_ABS, at); }
  void LoadByte(uint32_t at) { Add(BPF_LD | BPF_B | BPF_ABS, at); }
  void LoadCell(uint32_t cell) { Add(BPF_LD | BPF_MEM, cell); }
  void Store(uint32_t cell) { Add(BPF_ST, cell); }
  void Compute(uint16_t operation, uint32_t value) {
    Add(static_cast<uint16_t>(BPF_ALU | BPF_K | operation), value);
  }
  void Return(uint32_t value) { Add(BPF_RET | BPF_K, value); }
  // The accumulator becomes its exclusive or with the word at that place.
  void XorWith(uint32_t at) {
    Add(BPF_MISC | BPF_TAX, 0);
    Load(at);
    Add(BPF_ALU | BPF_XOR | BPF_X, 0);
  }
  // Jumps to a place that To() names. Returns the number of the jump.
  size_t Jump() {
    Add(BPF_JMP | BPF_JA, 0);
    return program_.size() - 1;
  }
  size_t JumpIf(uint16_t comparison, uint32_t value) {
    Add(static_cast<uint16_t>(BPF_JMP | BPF_K | comparison), value, 0, 1);
    return Jump();
  }
  size_t JumpUnless(uint16_t comparison, uint32_t value) {
    Add(static_cast<uint16_t>(BPF_JMP | BPF_K | comparison), value, 1, 0);
    return Jump();
  }
  void To(size_t jump) { program_[jump].k = static_cast<uint32_t>(program_.size() - jump - 1); }

  std::vector<sock_filter> Take() { return std::move(program_); }

 private:
  void Add(uint16_t code, uint32_t k, uint8_t if_true = 0, uint8_t if_false = 0) {
    program_.push_back({code, if_true, if_false, k});
  }
  std::vector<sock_filter> program_;
};

void ReturnShare(Writer& writer, PassShare share) {
  if (share != kAllPass) {
    writer.Load(kRandom);
    const size_t passes = writer.JumpUnless(BPF_JGT, share);
    writer.Return(kDrop);
    writer.To(passes);
  }
  writer.Return(kAccept);
}

// Calls each(kind), which writes what is done with that kind of datagram.
template <typename Each>
void ByKind(Writer& writer, const Each& each) {
  writer.Load(kQpnAt);
  writer.Compute(BPF_AND, 0xFFFFFF);
  const size_t mad = writer.JumpIf(BPF_JEQ, kGsiQpn.value);
  each(FloodKind::kOther);
  writer.To(mad);
  writer.LoadByte(kClassAt);
  writer.Compute(BPF_SUB, wire::kFirstVendorClass);
  // Lower classes have become large numbers.
  const size_t connection =
      writer.JumpIf(BPF_JGE, wire::kLastVendorClass - wire::kFirstVendorClass + 1);
  each(FloodKind::kDiscovery);
  writer.To(connection);
  each(FloodKind::kConnection);
}

// Leaves the source's word (FloodFilter::BucketOf) in the accumulator; adds jumps for known ones.
void Ipv4Source(Writer& writer, std::span<const wire::Gid> known, std::vector<size_t>& found) {
  writer.Load(kIpv4SourceAt);
  for (const wire::Gid& gid : known)
    if (gid.IsV4()) found.push_back(writer.JumpIf(BPF_JEQ, gid.V4()));
}

void Ipv6Source(Writer& writer, std::span<const wire::Gid> known, std::vector<size_t>& found) {
  for (const wire::Gid& gid : known) {
    if (gid.IsV4()) continue;
    std::vector<size_t> others;
    for (size_t i = 0; i < kWordsOfIpv6; ++i) {
      writer.Load(kIpv6SourceAt + static_cast<uint32_t>(4 * i));
      others.push_back(writer.JumpUnless(BPF_JEQ, wire::LoadBe32(gid.bytes.data() + 4 * i)));
    }
    found.push_back(writer.Jump());
    for (const size_t other : others) writer.To(other);
  }
  writer.Load(kIpv6SourceAt);
  for (size_t i = 1; i < kWordsOfIpv6; ++i)
    writer.XorWith(kIpv6SourceAt + static_cast<uint32_t>(4 * i));
}

}  // namespace

std::vector<sock_filter> FloodProgram(const FloodFilter& filter) {
  if (filter.empty()) return {};
  Writer writer;
  std::vector<size_t> known;
  writer.LoadByte(kIpAt);
  writer.Compute(BPF_RSH, 4);
  const size_t ipv6 = writer.JumpUnless(BPF_JEQ, 4);
  Ipv4Source(writer, filter.known(), known);
  const size_t stranger = writer.Jump();
  writer.To(ipv6);
  Ipv6Source(writer, filter.known(), known);
  writer.To(stranger);
  writer.Compute(BPF_MUL, filter.multiplier);
  writer.Compute(BPF_RSH, FloodFilter::kBucketShift);
  writer.Store(kBucketCell);
  ByKind(writer, [&](FloodKind kind) {
    const auto& shares = filter.of_strangers[static_cast<size_t>(kind)];
    writer.LoadCell(kBucketCell);
    for (uint32_t bucket = 0; bucket < shares.size(); ++bucket) {
      if (shares[bucket] == kAllPass) continue;
      const size_t other = writer.JumpUnless(BPF_JEQ, bucket);
      ReturnShare(writer, shares[bucket]);
      writer.To(other);
    }
    writer.Return(kAccept);
  });
  for (const size_t jump : known) writer.To(jump);
  ByKind(writer,
         [&](FloodKind kind) { ReturnShare(writer, filter.of_known[static_cast<size_t>(kind)]); });
  return writer.Take();
}

}  // namespace rocegw::port
