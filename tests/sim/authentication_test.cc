// SPDX-License-Identifier: Apache-2.0
// Traffic of queue pairs between gateways that share keys, over a cable that loses, repeats and
// delays packets: while keys are replaced, with control packets that are sent again, and towards a
// gateway without keys.

#include <gtest/gtest.h>

#include "gateway/cipher/openssl_ciphers.h"
#include "tests/sim/two_gateways.h"

namespace rocegw::sim::authentication {
namespace {

using Counters = metrics::WorkerCounters;
using Request = TwoGateways::Request;

constexpr SecretKey kFirst = {1, 2};
constexpr SecretKey kSecond = {3, 4};
constexpr uint32_t kLength = 3000;
constexpr uint64_t kTarget = 0x100000;

FleetKeys Keys(std::initializer_list<SecretKey> keys) {
  FleetKeys out;
  for (const SecretKey& key : keys) out.keys[out.count++] = key;
  return out;
}

TwoGatewaysOptions With(uint64_t seed, const FleetKeys& keys) {
  TwoGatewaysOptions options{.seed = seed};
  options.host.keys = keys;
  return options;
}

void Give(TwoGateways& gateways, int side, const FleetKeys& keys) {
  ASSERT_EQ(gateways.hosts[side].Call(0, {0, worker::UseKeys{keys}}).error, 0);
}

void Harm(TwoGateways& gateways, double share) {
  for (Link* const up : {gateways.wiring.up[0], gateways.wiring.up[1]})
    up->faults().Set({.lose = share, .duplicate = share, .delay = share});
}

// WRITEs of a queue pair, each to a place of its own, and what they wrote.
void WriteAndCompare(TwoGateways& gateways, const TwoGateways::Pair& pair, uint32_t count,
                     uint64_t stream) {
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t at = uint64_t{i} * kLength;
    gateways.Fill(0, at, kLength, stream + i);
    gateways.Post(0, pair.a,
                  {.opcode = ROCEGW_WR_RDMA_WRITE,
                   .local = at,
                   .length = kLength,
                   .remote = kTarget + at,
                   .id = i});
  }
  for (const rocegw_cqe& cqe : gateways.Await(pair.a, count)) ASSERT_EQ(cqe.status, 0);
  for (uint32_t i = 0; i < count; ++i) {
    ASSERT_TRUE(gateways.Holds(1, kTarget + uint64_t{i} * kLength, kLength, stream + i)) << i;
  }
}

class SimAuthentication : public ::testing::TestWithParam<uint64_t> {};

TEST_P(SimAuthentication, KeysAreReplacedUnderLoss_AllArrives) {
  TwoGateways gateways(With(GetParam(), Keys({kFirst})));
  Harm(gateways, 0.05);
  const TwoGateways::Pair pair = gateways.Connect();
  WriteAndCompare(gateways, pair, 12, 1);
  Give(gateways, 0, Keys({kFirst, kSecond}));
  WriteAndCompare(gateways, pair, 12, 2);
  Give(gateways, 1, Keys({kSecond, kFirst}));
  WriteAndCompare(gateways, pair, 12, 3);
  Give(gateways, 0, Keys({kSecond, kFirst}));
  WriteAndCompare(gateways, gateways.Connect(), 12, 4);
  Give(gateways, 0, Keys({kSecond}));
  Give(gateways, 1, Keys({kSecond}));
  WriteAndCompare(gateways, pair, 12, 5);
  for (int side = 0; side < 2; ++side) {
    EXPECT_EQ(gateways.Count(side, &Counters::channel_unauthenticated_events), 0u);
    EXPECT_EQ(gateways.Count(side, &Counters::channel_close_events), 0u);
    EXPECT_EQ(gateways.Count(side, &Counters::qp_error_events), 0u);
  }
  EXPECT_GT(gateways.Count(1, &Counters::channel_rx_packets), 0u);
}

TEST_P(SimAuthentication, PeerWithoutKey_WorksAndIsCounted) {
  TwoGateways gateways(With(GetParam(), {}));
  Give(gateways, 1, Keys({kFirst}));
  Harm(gateways, 0.05);
  WriteAndCompare(gateways, gateways.Connect(), 20, 1);
  EXPECT_EQ(gateways.Count(1, &Counters::channel_unauthenticated_events), 1u);
  EXPECT_GT(gateways.Count(1, &Counters::channel_rx_packets), 0u);
}

// Whatever somebody on the cable has recorded and sends again.
TEST_P(SimAuthentication, RepeatedControlPackets_ChangeNothing) {
  TwoGateways gateways(With(GetParam(), Keys({kFirst})));
  const TwoGateways::Pair pair = gateways.Connect();
  struct Recorded {
    wire::RxMeta meta;
    std::vector<uint8_t> bytes;
  };
  std::vector<Recorded> recorded;
  gateways.wiring.up[0]->Watch([&](LinkEvent event, const Packet& packet) {
    if (event == LinkEvent::kLeaves &&
        packet.opcode() == static_cast<uint8_t>(wire::Opcode::kChannelControl))
      recorded.push_back({packet.meta, {packet.bytes().begin(), packet.bytes().end()}});
  });
  WriteAndCompare(gateways, pair, 4, 1);
  gateways.wiring.up[0]->Watch({});
  ASSERT_FALSE(recorded.empty());
  for (const Recorded& one : recorded) {
    Packet* const again = gateways.network.store().Get();
    again->meta = one.meta;
    again->size = static_cast<uint32_t>(one.bytes.size());
    std::copy(one.bytes.begin(), one.bytes.end(), again->data);
    gateways.hosts[1].Arrive(again);
  }
  WriteAndCompare(gateways, pair, 4, 2);
  EXPECT_EQ(gateways.hosts[1].DropCount(metrics::DropReason::k_channel_replayed), recorded.size());
  EXPECT_EQ(gateways.Count(1, &Counters::channel_open_events), 1u);
}

const FrameCiphers& Ciphers() {
  static const cipher::OpensslCiphers ciphers;
  return ciphers;
}

FleetKeys Sealing(std::initializer_list<SecretKey> keys, uint64_t seed) {
  FleetKeys out = Keys(keys);
  out.ciphers = &Ciphers();
  out.protection = seed % 2 == 0 ? FrameProtection::kEncrypt : FrameProtection::kRequired;
  return out;
}

// Frames, acknowledgements and bundles are sealed while keys of the fleet are replaced, both
// gateways are taken over, and a party on the cable changes, repeats and replays datagrams.
TEST_P(SimAuthentication, SealedUnderAttack_AllArrives) {
  const uint64_t seed = GetParam();
  TwoGatewaysOptions options = With(seed, Sealing({kFirst}, seed));
  options.host.bundles = seed % 3 != 0;
  TwoGateways gateways(options);
  Harm(gateways, 0.03);
  std::vector<std::vector<uint8_t>> recorded[2];
  wire::RxMeta meta[2];
  uint64_t plain = 0;
  for (int side = 0; side < 2; ++side) {
    gateways.wiring.up[side]->Watch([&, side](LinkEvent event, const Packet& packet) {
      if (event != LinkEvent::kLeaves) return;
      const auto opcode = static_cast<wire::Opcode>(packet.opcode());
      plain += opcode != wire::Opcode::kChannelSealed && opcode != wire::Opcode::kChannelControl;
      if (opcode != wire::Opcode::kChannelSealed || recorded[side].size() >= 500) return;
      meta[side] = packet.meta;
      recorded[side].emplace_back(packet.bytes().begin(), packet.bytes().end());
    });
  }
  uint64_t attacks = 0;
  const auto attack = [&] {
    for (int side = 0; side < 2; ++side) {
      for (std::vector<uint8_t>& bytes : recorded[side]) {
        Packet* const packet = gateways.network.store().Get();
        if (++attacks % 2 == 0) {
          const size_t at = 4 + attacks * 2654435761u % (bytes.size() - 4 - wire::kIcrcLength);
          bytes[at] ^= static_cast<uint8_t>(1u << attacks % 8);
          const wire::Path path{.source = meta[side].source,
                                .destination = meta[side].destination,
                                .source_port = meta[side].source_port};
          wire::SealIcrc(path, meta[side].ip_id, bytes.data(), bytes.size() - wire::kIcrcLength);
        }
        packet->meta = meta[side];
        packet->size = static_cast<uint32_t>(bytes.size());
        std::copy(bytes.begin(), bytes.end(), packet->data);
        gateways.hosts[1 - side].Arrive(packet);
      }
      recorded[side].clear();
    }
  };
  const TwoGateways::Pair pair = gateways.Connect();
  WriteAndCompare(gateways, pair, 12, 1);
  attack();
  WriteAndCompare(gateways, pair, 12, 2);
  Give(gateways, 0, Sealing({kFirst, kSecond}, seed));
  Give(gateways, 1, Sealing({kFirst, kSecond}, seed));
  gateways.hosts[0].ReplaceWorkers();
  WriteAndCompare(gateways, pair, 12, 3);
  Give(gateways, 0, Sealing({kSecond, kFirst}, seed));
  attack();
  gateways.hosts[1].ReplaceWorkers();
  WriteAndCompare(gateways, pair, 12, 4);
  Give(gateways, 1, Sealing({kSecond, kFirst}, seed));
  attack();
  WriteAndCompare(gateways, pair, 12, 5);
  EXPECT_EQ(plain, 0u);
  EXPECT_GT(attacks, 100u);
  for (int side = 0; side < 2; ++side) {
    EXPECT_EQ(gateways.hosts[side].replacement_failure(), "");
    EXPECT_EQ(gateways.hosts[side].replacements(), 1u);
    EXPECT_EQ(gateways.Count(side, &Counters::channel_close_events), 0u);
    EXPECT_EQ(gateways.Count(side, &Counters::qp_error_events), 0u);
    EXPECT_GT(gateways.hosts[side].DropCount(metrics::DropReason::k_channel_seal) +
                  gateways.hosts[side].DropCount(metrics::DropReason::k_channel_old),
              0u);
  }
}

TEST_P(SimAuthentication, PoliciesThatDoNotFit_OnlyRequiredRefuses) {
  FleetKeys off = Keys({kFirst});
  FleetKeys preferred = Sealing({kFirst}, 1);
  preferred.protection = FrameProtection::kPreferred;
  TwoGateways gateways(With(GetParam(), off));
  Give(gateways, 1, preferred);
  Harm(gateways, 0.05);
  WriteAndCompare(gateways, gateways.Connect(), 8, 1);
  EXPECT_EQ(gateways.Count(0, &Counters::channel_sealed_tx_packets), 0u);
  EXPECT_EQ(gateways.Count(1, &Counters::channel_unsealed_events), 1u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SimAuthentication, ::testing::Range<uint64_t>(1, 9));

}  // namespace
}  // namespace rocegw::sim::authentication
