// SPDX-License-Identifier: Apache-2.0
// READs and atomics of endpoints over channels with loss, duplicates and delay: each executes once
// and returns what is there, and a failure affects one request only.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>

#include "tests/sim/endpoint_world.h"
#include "tests/support/random.h"

namespace rocegw::testing::endpoint_read {
namespace {

using endpoint::kGroupPeer;
using endpoint::kKeyOfEndpoints;
using endpoint::kMost;
using endpoint::World;
using verbs::WcStatus;

using Ids = std::vector<uint32_t>;
using Sent = std::vector<std::pair<uint32_t, uint8_t>>;
constexpr uint8_t kSend = ROCEGW_WR_SEND_WITH_IMM;
constexpr uint8_t kWrite = ROCEGW_WR_RDMA_WRITE;
constexpr uint8_t kRead = ROCEGW_WR_RDMA_READ;
constexpr uint8_t kSwap = ROCEGW_WR_ATOMIC_CMP_AND_SWP;
constexpr uint8_t kAdd = ROCEGW_WR_ATOMIC_FETCH_AND_ADD;
constexpr uint8_t kExchange = ROCEGW_WR_ATOMIC_SWAP;
constexpr uint8_t kSubtract = ROCEGW_WR_ATOMIC_FETCH_SUB;
constexpr uint16_t kNone = ROCEGW_WQE_ORDER_NONE;
constexpr uint64_t kThere = 0x1E0000;  // memory of a target that is not an inbox
constexpr uint64_t kWord = 0x1FF000;

uint8_t Code(WcStatus status) { return static_cast<uint8_t>(status); }

void FillWithPattern(World& world, int side, uint64_t offset, uint32_t length) {
  for (uint32_t i = 0; i < length; ++i)
    world.gateways().memory(side)[offset + i] = static_cast<uint8_t>(i * 31 + i / 251 + 3);
}
bool HoldsPattern(World& world, int side, uint64_t offset, uint32_t length, uint32_t from = 0) {
  for (uint32_t i = 0; i < length; ++i) {
    const uint32_t at = from + i;
    if (world.gateways().memory(side)[offset + i] != static_cast<uint8_t>(at * 31 + at / 251 + 3))
      return false;
  }
  return true;
}
std::map<uint32_t, uint8_t> StatusOf(World& world) {
  return {world.sent[0][0].begin(), world.sent[0][0].end()};
}
// Loses responses, which travel to side 0.
void LoseAnswers(World& world, size_t skip, size_t times = 1) {
  TamperRule rule;
  rule.direction = 0;
  rule.opcode = 0xC0;
  rule.skip = skip;
  rule.times = times;
  world.script().Add(rule);
}

TEST(EndpointRead, BringsWhatIsThere) {
  World world({.each = 2});
  FillWithPattern(world, 1, kThere, kMost);
  for (const uint32_t length : {0u, 1u, 100u, 4096u, kMost}) {
    const uint64_t at = world.NextSlot(0, 0);
    ASSERT_TRUE(world.Post(0, 0, World::HandleOf(1), kRead, length, length, 0, kThere));
    world.Run(60);
    EXPECT_TRUE(HoldsPattern(world, 0, at, length)) << length << " bytes";
  }
  EXPECT_EQ(world.SentIds(0, 0), (Ids{0, 1, 100, 4096, kMost}));
  for (const auto& [id, status] : world.sent[0][0]) EXPECT_EQ(status, 0);
}

TEST(EndpointRead, Atomics_ChangeTheWordOnce_AndBringWhatItWas) {
  World world({});
  world.SetWord(1, kWord, 40);
  const uint64_t first = world.NextSlot(0, 0);
  ASSERT_TRUE(world.Post(0, 0, 1, kAdd, 8, 1, 0, kWord, 0, 2));
  world.Run(60);
  EXPECT_EQ(world.WordAt(1, kWord), 42u);
  EXPECT_EQ(world.WordAt(0, first), 40u);
  const uint64_t second = world.NextSlot(0, 0);
  ASSERT_TRUE(world.Post(0, 0, 1, kSwap, 8, 2, 0, kWord, 0, 41, 7));  // not the current value
  world.Run(60);
  EXPECT_EQ(world.WordAt(1, kWord), 42u);
  EXPECT_EQ(world.WordAt(0, second), 42u);
  ASSERT_TRUE(world.Post(0, 0, 1, kSwap, 8, 3, 0, kWord, 0, 42, 7));
  world.Run(60);
  EXPECT_EQ(world.WordAt(1, kWord), 7u);
  EXPECT_EQ(world.sent[0][0], (Sent{{1, 0}, {2, 0}, {3, 0}}));
}

TEST(EndpointRead, FurtherAtomics_EachDoesWhatItIsCalled) {
  World world({});
  const struct {
    uint8_t opcode;
    uint64_t operand;
    uint64_t after;
  } steps[] = {{ROCEGW_WR_ATOMIC_STORE, 0x0F, 0x0F},
               {ROCEGW_WR_ATOMIC_LOAD, 0x77, 0x0F},
               {ROCEGW_WR_ATOMIC_FETCH_OR, 0x30, 0x3F},
               {ROCEGW_WR_ATOMIC_FETCH_AND, 0x3C, 0x3C},
               {ROCEGW_WR_ATOMIC_FETCH_XOR, 0xFF, 0xC3},
               {ROCEGW_WR_ATOMIC_FETCH_SUB, 0xC4, ~uint64_t{0}},
               {ROCEGW_WR_ATOMIC_SWAP, 5, 5}};
  uint64_t before = 0;
  uint32_t id = 0;
  Sent expected;
  for (const auto& step : steps) {
    const uint64_t at = world.NextSlot(0, 0);
    ASSERT_TRUE(world.Post(0, 0, 1, step.opcode, 8, id, 0, kWord, 0, step.operand));
    expected.emplace_back(id++, 0);
    world.Run(60);
    EXPECT_EQ(world.WordAt(0, at), before) << int{step.opcode};
    EXPECT_EQ(world.WordAt(1, kWord), step.after) << int{step.opcode};
    before = step.after;
  }
  EXPECT_EQ(world.sent[0][0], expected);
}

TEST(EndpointRead, WhatIsNotAllowed_FailsAlone) {
  World world({});
  world.AddPeer(0, 50, 0, kKeyOfEndpoints + 1);
  ASSERT_TRUE(world.Post(0, 0, 50, kRead, 100, 1, kNone, kThere));                     // its key
  ASSERT_TRUE(world.Post(0, 0, 1, kRead, 100, 2, kNone, kThere, 0xBAD));               // memory key
  ASSERT_TRUE(world.Post(0, 0, 1, kRead, 5000, 3, kNone, (2 << 20) - 100));            // range
  ASSERT_TRUE(world.Post(0, 0, 1, kAdd, 8, 4, kNone, kWord, 0xBAD, 1));                // memory key
  ASSERT_TRUE(world.Post(0, 0, 1, kAdd, 8, 5, kNone, kWord + 4, 0, 1));                // alignment
  ASSERT_TRUE(world.Post(0, 0, 1, kSwap, 4, 6, kNone, kWord, 0, 1));                   // length
  ASSERT_TRUE(world.Post(0, 0, 1, kRead, 100, 7, kNone | ROCEGW_WQE_INLINE, kThere));  // no buffer
  ASSERT_TRUE(world.Post(0, 0, 1, kAdd, 8, 8, kNone, kWord, 0, 1));
  world.Run(100);
  EXPECT_EQ(StatusOf(world),
            (std::map<uint32_t, uint8_t>{{1, Code(WcStatus::kRemoteAccess)},
                                         {2, Code(WcStatus::kRemoteAccess)},
                                         {3, Code(WcStatus::kRemoteAccess)},
                                         {4, Code(WcStatus::kRemoteAccess)},
                                         {5, Code(WcStatus::kRemoteInvalidRequest)},
                                         {6, Code(WcStatus::kLocalLength)},
                                         {7, Code(WcStatus::kLocalQpOperation)},
                                         {8, 0}}));
  EXPECT_EQ(world.WordAt(1, kWord), 1u);
}

// A peer gateway without this feature would drop such frames.
TEST(EndpointRead, OfAnOlderGateway_FailsBeforeItLeaves) {
  World world({});
  world.AddPeer(0, 50, 0, kKeyOfEndpoints, 0, wire::kOptionEndpointReads);
  world.AddPeer(0, 51, 0, kKeyOfEndpoints, 0, wire::kOptionFetchOperate);
  ASSERT_TRUE(world.Post(0, 0, 50, kRead, 100, 1, kNone, kThere));
  ASSERT_TRUE(world.Post(0, 0, 50, kAdd, 8, 2, kNone, kWord, 0, 1));
  ASSERT_TRUE(world.Post(0, 0, 50, kSend, 100, 3, kNone));
  ASSERT_TRUE(world.Post(0, 0, 51, kExchange, 8, 4, kNone, kWord, 0, 1));
  world.Run(100);
  EXPECT_EQ(StatusOf(world), (std::map<uint32_t, uint8_t>{{1, Code(WcStatus::kLocalQpOperation)},
                                                          {2, Code(WcStatus::kLocalQpOperation)},
                                                          {3, 0},
                                                          {4, Code(WcStatus::kLocalQpOperation)}}));
  EXPECT_EQ(world.WordAt(1, kWord), 0u);
  EXPECT_EQ(world.gateways().Count(0, &metrics::WorkerCounters::request_tx_packets), 1u);
}

TEST(EndpointRead, ItsAnswerIsLost_ItComesAgain_AndTheAtomicHappensOnce) {
  World world({});
  FillWithPattern(world, 1, kThere, kMost);
  ASSERT_TRUE(world.Post(0, 0, 1, kAdd, 8, 1, 0, kWord, 0, 1));
  world.Run(60);
  LoseAnswers(world, 0, 2);
  const uint64_t at = world.NextSlot(0, 0);
  ASSERT_TRUE(world.Post(0, 0, 1, kAdd, 8, 2, 0, kWord, 0, 1));
  world.Run(2000);
  EXPECT_EQ(world.WordAt(1, kWord), 2u);
  EXPECT_EQ(world.WordAt(0, at), 1u);
  LoseAnswers(world, 1, 2);
  const uint64_t data = world.NextSlot(0, 0);
  ASSERT_TRUE(world.Post(0, 0, 1, kRead, kMost, 3, 0, kThere));
  world.Run(2000);
  EXPECT_TRUE(HoldsPattern(world, 0, data, kMost));
  EXPECT_EQ(world.sent[0][0], (Sent{{1, 0}, {2, 0}, {3, 0}}));
}

TEST(EndpointRead, StrongOrder_ReadsWhatWasWrittenBefore) {
  World world({});
  ASSERT_TRUE(world.Post(0, 0, 1, kSend, 10, 0));
  world.Run(50);
  world.Lose(0);
  const uint64_t written = world.NextSlot(0, 0);
  ASSERT_TRUE(world.Post(0, 0, 1, kWrite, 3000, 1, 0, kThere));
  const uint64_t read = world.NextSlot(0, 0);
  ASSERT_NE(written, read);
  ASSERT_TRUE(world.Post(0, 0, 1, kRead, 3000, 2, 0, kThere));
  world.Run(2000);
  EXPECT_EQ(world.SentIds(0, 0), (Ids{0, 1, 2}));
  EXPECT_TRUE(World::Holds(&world.gateways().memory(0)[read], 3000, 1));
}

// A fence waits until READ data is placed, not only received.
TEST(EndpointRead, FenceOfReads_HoldsBackWhatSendsOnWhatTheyBrought) {
  for (const bool fenced : {false, true}) {
    World world({.each = 2, .mode = verbs::ServiceMode::kUnordered});
    FillWithPattern(world, 1, kThere, kMost);
    ASSERT_TRUE(world.Post(0, 0, World::HandleOf(0), kSend, 10, 0));
    world.Run(50);
    LoseAnswers(world, 0);
    ASSERT_TRUE(world.Post(0, 0, World::HandleOf(0), kRead, kMost, 1, 0, kThere));
    ASSERT_TRUE(world.Post(0, 0, World::HandleOf(1), kSend, 100, 2,
                           fenced ? uint16_t{ROCEGW_WQE_FENCE} : uint16_t{0}));
    ASSERT_TRUE(world.Post(0, 0, World::HandleOf(1), kSend, 100, 3));
    world.Run(2000);
    EXPECT_EQ(world.SentIds(0, 0), fenced ? (Ids{0, 1, 2, 3}) : (Ids{0, 2, 3, 1}));
  }
}

TEST(EndpointRead, ALongOne_DoesNotKeepOthersWaiting) {
  World world({.each = 2, .mode = verbs::ServiceMode::kUnordered});
  FillWithPattern(world, 1, 0, 1 << 20);
  rocegw_send_wqe wqe{};
  wqe.wr_id = 1;
  wqe.opcode = kRead;
  wqe.flags = ROCEGW_WQE_SIGNALED;
  wqe.u.rdma.peer = World::HandleOf(1);
  wqe.u.rdma.remote_address = GatewayPair::kBase;
  wqe.u.rdma.rkey = GatewayPair::kKey[1];
  ASSERT_TRUE(world.end(0, 0).PostSend(
      wqe, {{GatewayPair::kBase + (1 << 20), 1 << 20, GatewayPair::kKey[0]}}));
  world.gateways().Ring(0, world.end(0, 0));
  world.Run(3);
  ASSERT_TRUE(world.Post(0, 1, World::HandleOf(1), kAdd, 8, 2, 0, kWord, 0, 1));
  int steps = 0;
  for (; world.sent[0][1].empty() && steps < 10000; ++steps) world.Step();
  EXPECT_TRUE(world.sent[0][0].empty()) << "the long one is still under way";
  for (; world.sent[0][0].empty() && steps < 10000; ++steps) world.Step();
  EXPECT_EQ(world.sent[0][0], (Sent{{1, 0}}));
  EXPECT_TRUE(HoldsPattern(world, 0, 1 << 20, (1 << 20) - 8192));
}

TEST(EndpointRead, TheTargetEndsInTheMiddle_ItFailsInTheEnd_AndOthersGoOn) {
  World world({.each = 2, .mode = verbs::ServiceMode::kUnordered});
  ASSERT_TRUE(world.Post(0, 0, World::HandleOf(1), kSend, 10, 1));
  world.Run(50);
  LoseAnswers(world, 0, SIZE_MAX);
  ASSERT_TRUE(world.Post(0, 0, World::HandleOf(1), kRead, kMost, 2, 0, kThere));
  world.Run(5);
  world.gateways().Remove(1, world.end(1, 1));
  world.script().Calm();
  ASSERT_TRUE(world.Post(0, 0, World::HandleOf(0), kAdd, 8, 3, 0, kWord, 0, 1));
  world.Run(8000);
  EXPECT_EQ(StatusOf(world),
            (std::map<uint32_t, uint8_t>{{1, 0}, {2, Code(WcStatus::kRetryExceeded)}, {3, 0}}));
}

TEST(EndpointRead, AnAtomicsResultIsLost_AndItsTargetEnds_ItIsToldAllTheSame) {
  World world({.each = 2, .mode = verbs::ServiceMode::kUnordered});
  ASSERT_TRUE(world.Post(0, 0, World::HandleOf(1), kAdd, 8, 1, 0, kWord, 0, 5));
  world.Run(50);
  LoseAnswers(world, 0, SIZE_MAX);
  const uint64_t at = world.NextSlot(0, 0);
  ASSERT_TRUE(world.Post(0, 0, World::HandleOf(1), kAdd, 8, 2, 0, kWord, 0, 1));
  world.Run(5);
  world.gateways().Remove(1, world.end(1, 1));
  world.Run(100);
  world.script().Calm();
  world.Run(2000);
  EXPECT_EQ(StatusOf(world), (std::map<uint32_t, uint8_t>{{1, 0}, {2, 0}}));
  EXPECT_EQ(world.WordAt(0, at), 5u);
  EXPECT_EQ(world.WordAt(1, kWord), 6u);
}

TEST(EndpointRead, ThePeerGatewayIsGone_TheAtomicFails_AndMayHaveHappenedOnce) {
  for (const bool answers : {false, true}) {
    World world({});
    ASSERT_TRUE(world.Post(0, 0, 1, kSend, 10, 1));
    world.Run(50);
    if (answers) {
      LoseAnswers(world, 0, SIZE_MAX);
    } else {
      world.Lose(0, SIZE_MAX);
    }
    ASSERT_TRUE(world.Post(0, 0, 1, kAdd, 8, 2, 0, kWord, 0, 1));
    world.Run(9000);
    EXPECT_EQ(world.sent[0][0], (Sent{{1, 0}, {2, Code(WcStatus::kRetryExceeded)}}));
    EXPECT_EQ(world.WordAt(1, kWord), answers ? 1u : 0u);
  }
}

TEST(EndpointRead, OfAGroup_AnyMemberAnswers) {
  World world({.each = 3, .receives = 0, .group = verbs::Dispatch::kRoundRobin});
  FillWithPattern(world, 1, kThere, kMost);
  for (uint32_t id = 0; id < 6; ++id) {
    const uint64_t at = world.NextSlot(0, 0);
    ASSERT_TRUE(world.Post(0, 0, kGroupPeer, kRead, kMost, id, 0, kThere));
    ASSERT_TRUE(world.Post(0, 1, kGroupPeer, kAdd, 8, id, 0, kWord, 0, 1));
    world.Run(100);
    EXPECT_TRUE(HoldsPattern(world, 0, at, kMost));
  }
  EXPECT_EQ(world.WordAt(1, kWord), 6u);
  EXPECT_EQ(world.SentIds(0, 0).size(), 6u);
  EXPECT_EQ(world.gateways().Count(1, &metrics::WorkerCounters::rnr_tx_packets), 0u);
}

// All endpoints read, write, count and swap over a bad network. READs must return the expected
// bytes: of memory that nobody writes, or of memory that the same endpoint wrote in strong order.
// Each fetch-add and fetch-subtract sees a different value of its counter; successful
// compare-and-swaps form one chain, and so do all swaps, since each swapped-in value is found once.
class Oracle {
 public:
  static constexpr uint64_t kOwn = 0x170000;  // endpoint i: 0x1000 bytes at offset i * 0x1000
  static constexpr uint32_t kSwapWord = 8;
  static constexpr uint32_t kSubtractWord = 16;
  static constexpr uint32_t kExchangeWord = 24;

  Oracle(World& world, size_t each) : world_(world), own_(each, std::vector<uint8_t>(0x1000)) {
    FillWithPattern(world, 1, kThere, 0x8000);
  }

  // Returns false if the queue is full.
  bool Post(Random& random, size_t from, uint32_t peer) {
    const uint32_t id = next_;
    Request request{.from = from, .local = world_.NextSlot(0, from)};
    request.opcode =
        std::array{kRead, kAdd, kSwap, kWrite, kRead, kSubtract, kExchange}[random.Below(7)];
    request.own = request.opcode == kWrite || (request.opcode == kRead && random.Coin());
    const bool words = IsOnWord(request.opcode);
    request.length = words ? 8 : static_cast<uint32_t>(random.Below(0x1000));
    request.offset = words ? 0 : static_cast<uint32_t>(random.Below(0x1000 - request.length));
    uint64_t remote = (request.own ? kOwn + from * 0x1000 : kThere) + request.offset;
    if (words) remote = kWord + WordOf(request.opcode);
    // The value to swap in is unique.
    request.compare = request.opcode == kSwap ? last_swapped_ : 1;
    if (request.opcode == kExchange) request.compare = id + 1;
    request.swap = id + 1;
    // Requests on the same bytes keep their order.
    const uint16_t flags = request.own || random.Coin() ? uint16_t{0} : kNone;
    if (!world_.Post(0, from, peer, request.opcode, request.length, id, flags, remote, 0,
                     request.compare, request.swap)) {
      return false;
    }
    if (request.opcode == kWrite) {
      std::fill_n(own_[from].begin() + request.offset, request.length,
                  static_cast<uint8_t>(id * 7 + 1));
    } else if (request.own) {
      const auto begin = own_[from].begin() + request.offset;
      request.expected.assign(begin, begin + request.length);
    }
    requests_.push_back(request);
    ++next_;
    return true;
  }

  void OnCompletion(uint32_t id, uint8_t status) {
    Request& request = requests_.at(id);
    ASSERT_FALSE(request.ended) << id << " ended twice";
    request.ended = true;
    ++ended;
    if (status != 0) {
      // A channel that cannot be opened for 0.3 s closes, and a delayed packet waits for later
      // packets, which may take long if nobody else sends.
      ASSERT_EQ(status, Code(WcStatus::kRetryExceeded)) << "request " << id;
      ++failed_[request.opcode];
      ++failed;
      return;
    }
    const uint64_t word = world_.WordAt(0, request.local);
    if (request.opcode == kAdd) {
      EXPECT_TRUE(counted_.insert(word).second) << word << " was counted twice";
    } else if (request.opcode == kSubtract) {
      EXPECT_TRUE(subtracted_.insert(word).second) << word << " was counted twice";
    } else if (request.opcode == kExchange) {
      EXPECT_TRUE(exchanged_.insert(word).second) << word << " was swapped out twice";
      EXPECT_TRUE(word == 0 || (word <= next_ && requests_[word - 1].opcode == kExchange));
    } else if (request.opcode == kSwap && word == request.compare) {
      EXPECT_TRUE(successors_.emplace(word, request.swap).second) << word << " was swapped twice";
      last_swapped_ = request.swap;
    } else if (request.opcode == kSwap) {
      last_swapped_ = word;
    } else if (request.opcode == kRead && request.own && failed_[kWrite] == 0) {
      EXPECT_EQ(0, std::memcmp(&world_.gateways().memory(0)[request.local], request.expected.data(),
                               request.length))
          << "request " << id;
    } else if (request.opcode == kRead && !request.own) {
      EXPECT_TRUE(HoldsPattern(world_, 0, request.local, request.length, request.offset))
          << "request " << id;
    }
  }

  // A failed request executed once or not at all.
  void CheckWords() {
    const uint64_t count = world_.WordAt(1, kWord);
    EXPECT_GE(count, counted_.size());
    EXPECT_LE(count, counted_.size() + failed_[kAdd]);
    EXPECT_TRUE(counted_.empty() || *counted_.rbegin() < count);
    const uint64_t subtracted = -world_.WordAt(1, kWord + kSubtractWord);
    EXPECT_GE(subtracted, subtracted_.size());
    EXPECT_LE(subtracted, subtracted_.size() + failed_[kSubtract]);
    EXPECT_FALSE(exchanged_.contains(world_.WordAt(1, kWord + kExchangeWord)) &&
                 !exchanged_.empty());
    if (failed_[kSwap] != 0) return;
    uint64_t word = 0;
    size_t chain = 0;
    for (auto next = successors_.find(0); next != successors_.end();
         next = successors_.find(word)) {
      word = next->second;
      ++chain;
    }
    EXPECT_EQ(chain, successors_.size());
    EXPECT_EQ(world_.WordAt(1, kWord + kSwapWord), word);
  }

  uint32_t ended = 0;
  uint32_t failed = 0;

 private:
  static bool IsOnWord(uint8_t opcode) {
    return opcode == kAdd || opcode == kSwap || opcode == kSubtract || opcode == kExchange;
  }
  static uint32_t WordOf(uint8_t opcode) {
    if (opcode == kSwap) return kSwapWord;
    if (opcode == kSubtract) return kSubtractWord;
    return opcode == kExchange ? kExchangeWord : 0;
  }

  struct Request {
    size_t from = 0;
    uint64_t local = 0;
    uint8_t opcode = 0;
    bool own = false;
    bool ended = false;
    uint32_t length = 0;
    uint32_t offset = 0;
    uint64_t compare = 0;
    uint64_t swap = 0;
    std::vector<uint8_t> expected;
  };
  World& world_;
  std::vector<std::vector<uint8_t>> own_;
  std::vector<Request> requests_;
  std::map<uint8_t, uint32_t> failed_;  // by opcode
  std::set<uint64_t> counted_;
  std::set<uint64_t> subtracted_;
  std::set<uint64_t> exchanged_;
  std::map<uint64_t, uint64_t> successors_;
  uint64_t last_swapped_ = 0;
  uint32_t next_ = 0;
};

TEST(EndpointRead, EverybodyAtOnce_EachOnce_WhateverTheNetworkDoes) {
  uint32_t requests = 0;
  uint32_t failed = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random(seed);
    const bool group = random.Below(4) == 0;
    World world({.each = 4,
                 .receives = 0,
                 .any_completion_order = random.Coin(),
                 .workers = group ? 1 : random.Between(1, 2),
                 .paths = static_cast<uint32_t>(random.Between(1, 3)),
                 // Loss of the first frame of a channel is detected only after 50 ms, and its
                 // repetition may be lost.
                 .give_up_ms = 500,
                 .group = group ? std::optional(static_cast<verbs::Dispatch>(random.Below(3)))
                                : std::nullopt},
                seed);
    world.script().Set({.drop = random.Below(3) * 0.05,
                        .delay = random.Below(2) * 0.1,
                        .duplicate = random.Below(2) * 0.05});
    Oracle oracle(world, 4);
    // An endpoint must read its own writes from the target that it wrote to.
    size_t target[4];
    for (size_t& one : target) one = random.Below(4);
    constexpr uint32_t kRequests = 200;
    uint32_t posted = 0;
    for (int step = 0; step < 3000000 && oracle.ended < kRequests; ++step) {
      while (posted < kRequests && random.Below(3) != 0) {
        const size_t from = random.Below(4);
        const uint32_t peer = group ? kGroupPeer : World::HandleOf(target[from]);
        if (!oracle.Post(random, from, peer)) break;
        ++posted;
      }
      world.Step();
      for (auto& [endpoint, list] : world.sent[0]) {
        for (const auto& [id, status] : list) oracle.OnCompletion(id, status);
        list.clear();
      }
      if (::testing::Test::HasFailure()) return;
    }
    ASSERT_EQ(oracle.ended, kRequests);
    oracle.CheckWords();
    requests += kRequests;
    failed += oracle.failed;
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_LE(failed, requests / 100);
}

}  // namespace
}  // namespace rocegw::testing::endpoint_read
