// SPDX-License-Identifier: Apache-2.0
// Contents of REQ and REP and their consequences: one row for each kind of peer.
#include "gateway/cm/connection/negotiation.h"

#include <gtest/gtest.h>

#include <string>

namespace rocegw::cm {
namespace {

constexpr uint32_t kOurs = wire::kDefaultVendorId;
constexpr uint32_t kNvidia = 0x0015B3;
constexpr uint32_t kChannel = wire::kOptionPresent | wire::kOptionChannel |
                              wire::kOptionSelectiveAck | wire::kOptionCcDcqcn |
                              wire::kOptionCcHint;
constexpr uint32_t kSelective =
    wire::kOptionPresent | wire::kOptionChannel | wire::kOptionSelectiveAck;
constexpr uint32_t kBest = kSelective | wire::kOptionCcHint;

NegotiationView Rnic() { return {kOurs, kChannel, PeerKind::kRnic, 0}; }
NegotiationView Gateway(uint32_t peer = kChannel) {
  return {kOurs, kChannel, PeerKind::kGateway, peer};
}

struct Row {
  const char* name;
  NegotiationView view;
  Ece application;
  Ece received;
  Ece sent;
  uint32_t agreed;
  const char* verdict;  // part of it
};

TEST(Negotiation, ActiveSide_ByWhatThePeerIsAndAnswers) {
  const Row rows[] = {
      {"Linux, zero", Rnic(), {}, {0, 0}, {0, 0}, 0, "no vendor on either side"},
      {"options without vendor", Rnic(), {}, {0, 0x55}, {0, 0}, 0, "no vendor on either side"},
      {"ConnectX unasked", Rnic(), {}, {kNvidia, 3}, {0, 0}, 0, "without being asked"},
      {"gateway id unasked", Rnic(), {}, {kOurs, kChannel}, {0, 0}, 0, "without being asked"},
      {"options of a program without vendor", Rnic(), {0, 0xFF}, {0, 0}, {0, 0}, 0, "no vendor"},
      {"gateway", Gateway(), {}, {kOurs, kBest}, {kOurs, kChannel}, kBest, "agreed between"},
      {"gateway answers more than was offered",
       Gateway(),
       {},
       {kOurs, 0xFFFFFFFF},
       {kOurs, kChannel},
       kBest,
       "agreed between"},
      {"gateway declines", Gateway(), {}, {kOurs, 1}, {kOurs, kChannel}, 0, "agreed to no channel"},
      {"gateway agrees to all but a channel",
       Gateway(),
       {},
       {kOurs, kChannel & ~wire::kOptionChannel},
       {kOurs, kChannel},
       0,
       "agreed to no channel"},
      {"device echoes", Gateway(), {}, {kOurs, 0}, {kOurs, kChannel}, 0, "echoes"},
      {"echo with options but without the first bit",
       Gateway(),
       {},
       {kOurs, 2},
       {kOurs, kChannel},
       0,
       "echoes"},
      {"answers 0 to an offer", Gateway(), {}, {0, 0}, {kOurs, kChannel}, 0, "names no vendor"},
      {"older gateway without channels, foreign answer",
       Gateway(1),
       {},
       {kNvidia, 1},
       {kOurs, kChannel},
       0,
       "another vendor"},
      {"gateway whose program answers for itself",
       Gateway(),
       {},
       {kNvidia, 1},
       {kOurs, kChannel},
       kBest,
       "by discovery"},
      {"program's ECE, taken", Rnic(), {kNvidia, 9}, {kNvidia, 1}, {kNvidia, 9}, 0, "answered"},
      {"program's ECE, declined", Rnic(), {kNvidia, 9}, {0, 0}, {kNvidia, 9}, 0, "declined"},
      {"program's ECE to a gateway",
       Gateway(),
       {kNvidia, 9},
       {kNvidia, 0},
       {kNvidia, 9},
       kBest,
       "by discovery"},
      {"program that speaks for the gateway",
       Gateway(),
       {kOurs, kChannel & ~wire::kOptionCcHint},
       {kOurs, kChannel & ~wire::kOptionCcHint},
       {kOurs, kChannel & ~wire::kOptionCcHint},
       kChannel & ~wire::kOptionCcHint,
       "agreed between"},
      {"the same to an RDMA device that answers like a gateway",
       Rnic(),
       {kOurs, kChannel},
       {kOurs, kChannel},
       {kOurs, kChannel},
       0,
       "no channel"},
  };
  for (const Row& row : rows) {
    EceRecord record;
    EXPECT_EQ(EceForRequest(row.application, row.view, record), row.sent) << row.name;
    EceFromReply(row.received, row.view, record);
    EXPECT_EQ(record.sent, row.sent) << row.name;
    EXPECT_EQ(record.received, row.received) << row.name;
    EXPECT_EQ(record.agreed, row.agreed) << row.name;
    EXPECT_NE(std::string(record.verdict).find(row.verdict), std::string::npos)
        << row.name << ": " << record.verdict;
  }
}

TEST(Negotiation, PassiveSide_ByWhatThePeerIsAndAsks) {
  const Row rows[] = {
      {"Linux", Rnic(), {}, {0, 0}, {0, 0}, 0, "names no vendor"},
      {"Linux with an attribute modifier", Rnic(), {}, {0, 7}, {0, 0}, 0, "names no vendor"},
      {"ConnectX", Rnic(), {}, {kNvidia, 7}, {kNvidia, 0}, 0, "declined"},
      {"foreign vendor", Rnic(), {}, {0xFFFFFF, 7}, {0xFFFFFF, 0}, 0, "declined"},
      {"our id without options is echoed", Gateway(), {}, {kOurs, 0}, {kOurs, 0}, 0, "declined"},
      {"gateway", Gateway(), {}, {kOurs, kChannel}, {kOurs, kBest}, kBest, "agreed between"},
      {"gateway that offers less",
       Gateway(),
       {},
       {kOurs, kSelective | wire::kOptionCcRtt},
       {kOurs, kSelective},
       kSelective,
       "agreed between"},
      {"gateway that offers what discovery did not tell",
       Gateway(1),
       {},
       {kOurs, kChannel},
       {kOurs, 1},
       0,
       "in common"},
      {"older gateway", Gateway(1), {}, {kOurs, 1}, {kOurs, 1}, 0, "in common"},
      {"offer of a stranger", Rnic(), {}, {kOurs, kChannel}, {kOurs, 1}, 0, "did not answer"},
      {"program's ECE", Rnic(), {kNvidia, 1}, {kNvidia, 9}, {kNvidia, 1}, 0, "program's own"},
      {"program's ECE towards a gateway",
       Gateway(),
       {kNvidia, 1},
       {kOurs, kChannel},
       {kNvidia, 1},
       kBest,
       "by discovery"},
      {"gateway whose program asks for itself",
       Gateway(),
       {},
       {kNvidia, 9},
       {kNvidia, 0},
       kBest,
       "by discovery"},
      {"gateway that takes us for a device", Gateway(), {}, {0, 0}, {0, 0}, 0, "names no vendor"},
      {"program that speaks for the gateway and wants no channel",
       Gateway(),
       {kOurs, 1},
       {kOurs, kChannel},
       {kOurs, 1},
       0,
       "program's own"},
  };
  for (const Row& row : rows) {
    EceRecord record;
    EceFromRequest(row.received, record);
    EXPECT_EQ(EceForReply(row.application, row.view, record), row.sent) << row.name;
    EXPECT_EQ(record.agreed, row.agreed) << row.name;
    EXPECT_NE(std::string(record.verdict).find(row.verdict), std::string::npos)
        << row.name << ": " << record.verdict;
  }
}

// Both ends conclude the same from the same two messages, whichever of them has a program with its
// own ECE.
TEST(Negotiation, TwoGateways_AgreeOnTheSame) {
  for (const Ece& active : {Ece{}, Ece{kNvidia, 5}, Ece{kOurs, kBest}}) {
    for (const Ece& passive : {Ece{}, Ece{kNvidia, 5}}) {
      for (const uint32_t own : {kChannel, kBest, 1u, kChannel & ~wire::kOptionCcMask}) {
        for (const uint32_t other : {kChannel, 1u, kBest & ~wire::kOptionSelectiveAck}) {
          const NegotiationView here{kOurs, own, PeerKind::kGateway, other};
          const NegotiationView there{kOurs, other, PeerKind::kGateway, own};
          EceRecord a;
          EceRecord b;
          EceFromRequest(EceForRequest(active, here, a), b);
          EceFromReply(EceForReply(passive, there, b), here, a);
          EXPECT_EQ(a.agreed, b.agreed)
              << std::hex << active.vendor_id << " " << passive.vendor_id << " " << own << " "
              << other << ": " << a.verdict << "; " << b.verdict;
        }
      }
    }
  }
}

TEST(Negotiation, BeforeTheReply_WhatItWouldSay) {
  EceRecord record;
  EceFromRequest({kOurs, kChannel}, record);
  EXPECT_EQ(WouldAgree(record, Gateway()), kBest);
  EXPECT_EQ(WouldAgree(record, Rnic()), 0u);
  EXPECT_EQ(record.agreed, 0u);
}

}  // namespace
}  // namespace rocegw::cm
