// SPDX-License-Identifier: Apache-2.0
// XRC while whole workers are replaced by fresh ones at random moments, over a network with loss,
// duplicates and corruption. The messages of one XRC_SEND queue pair go to two shared receive
// queues of a domain. Each message arrives once, whole, in order, at the queue that it names.
// ROCEGW_TEST_SEED=n runs only world n.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/sim/host/host.h"
#include "tests/support/qp/shared_end.h"

namespace rocegw::sim {
namespace {

constexpr size_t kQueues = 2;
constexpr uint32_t kReceives = 8;
constexpr uint32_t kMost = 5000;  // bytes of a message
constexpr uint64_t kRoom = 8192;
constexpr uint32_t kMessages = 60;
constexpr SessionId kProgram{1};
constexpr SessionId kDomain{77};
constexpr Qpn kSource{100};
constexpr Qpn kTarget{200};
constexpr Duration kLongest = Seconds(60);

class XrcWorld {
 public:
  explicit XrcWorld(uint64_t seed)
      : random_(seed),
        network_({.seed = seed}),
        from_(network_, 1, Config()),
        to_(network_, 2, Config()),
        source_(from_.AddQp({.type = verbs::QpType::kXrcSend,
                             .qpn = kSource.value,
                             .sq_entries = 16,
                             .cq_entries = 64,
                             .signal_all = true})) {
    WirePair(network_, from_, to_, {.delay = Microseconds(2)});
    for (const auto& link : network_.links())
      link->faults().Set({.lose = 0.01, .duplicate = 0.01, .corrupt = 0.005});
    worker::LinkSession domain;
    domain.session = kDomain;
    domain.line = &line_;
    domain.xrc_domain = true;
    Link(to_, domain, "domain");
    for (uint32_t i = 0; i < kQueues; ++i) AddQueue(i);
    verbs::QpConfig target;
    target.type = verbs::QpType::kXrcReceive;
    target.qpn = kTarget;
    target.session = kDomain;
    target.status = &status_;
    Link(to_, worker::LinkQp{target}, "target");
    Connect(from_, kProgram, kSource, to_.gid(), kTarget, true);
    Connect(to_, kDomain, kTarget, from_.gid(), kSource, false);
  }

  // Returns the number of replacements, or fails the test.
  uint64_t Run() {
    const TimePoint end = network_.now() + kLongest;
    uint64_t next = random_() % 200;
    for (uint64_t event = 0; completed_ < kMessages || received_ < kMessages; ++event) {
      Post();
      if (!network_.RunOne(end)) {
        ADD_FAILURE() << completed_ << " completed and " << received_ << " received of "
                      << kMessages;
        break;
      }
      if (event >= next) {
        (random_() % 2 == 0 ? from_ : to_).ReplaceWorkers();
        next = event + 1 + random_() % 200;
      }
      Take();
      if (::testing::Test::HasFailure()) break;
    }
    EXPECT_EQ(from_.replacement_failure(), "");
    EXPECT_EQ(to_.replacement_failure(), "");
    return from_.replacements() + to_.replacements();
  }

 private:
  struct Queue {
    Queue(const testing::SharedOptions& options, const RingOptions& ring)
        : end(options), completions(ring) {}
    testing::SharedEnd end;
    RingEnd completions;
    std::vector<uint32_t> free;  // buffers
  };
  struct Message {
    uint32_t queue = 0;
    uint32_t length = 0;
  };

  static HostConfig Config() {
    HostConfig config;
    config.memory_bytes = (kQueues * kReceives + 16) * kRoom;
    return config;
  }
  template <typename Body>
  static void Link(Host& host, const Body& body, const char* what) {
    EXPECT_EQ(host.Call(0, {0, body}).error, 0) << what;
  }
  static uint32_t NumberOf(uint32_t queue) { return 0x5100 + queue; }

  void AddQueue(uint32_t index) {
    RingOptions ring;
    ring.handle = 10 + index;
    ring.cq_entries = 64;
    testing::SharedOptions options;
    options.handle = 40 + index;
    options.entries = kReceives;
    options.max_sge = 1;
    Queue& queue = *queues_.emplace_back(std::make_unique<Queue>(options, ring));
    Link(to_, worker::LinkCq{queue.completions.Cq()}, "completion queue");
    verbs::SrqConfig config = queue.end.Srq();
    config.domain = kDomain;
    config.number = NumberOf(index);
    config.pd = 1;
    config.cq = ring.handle;
    config.max_sge = 1;
    config.payload_slots = kReceives;
    Link(to_, worker::LinkSrq{config}, "shared receive queue");
    for (uint32_t i = 0; i < kReceives; ++i) queue.free.push_back(index * kReceives + i);
  }

  void Connect(Host& host, SessionId session, Qpn own, const wire::Gid& peer, Qpn other,
               bool sends) {
    using namespace verbs;  // NOLINT(google-build-using-namespace)
    QpAttributes want;
    want.path_mtu = 3;
    want.max_rd_atomic = want.max_dest_rd_atomic = 4;
    want.timeout = 10;
    want.retry_count = want.rnr_retry = 7;
    want.min_rnr_timer = 1;
    want.access = kAccessRemoteRead | kAccessRemoteWrite;
    want.sq_psn = Psn(own.value);
    want.rq_psn = Psn(other.value);
    want.dest_qpn = other;
    want.path.source = host.gid();
    want.path.destination = peer;
    want.path.source_port = 0xC123;
    const auto step = [&](QpState state, uint32_t mask) {
      want.state = state;
      Link(host, worker::ModifyQp{session, own, kAttrState | mask, want, {}}, "modify");
    };
    step(QpState::kInit, kAttrPkeyIndex | kAttrPort | kAttrAccessFlags);
    step(QpState::kRtr, kAttrAv | kAttrPathMtu | kAttrDestQpn | kAttrRqPsn |
                            (sends ? 0 : kAttrMaxDestRdAtomic | kAttrMinRnrTimer));
    step(QpState::kRts, kAttrTimeout | kAttrSqPsn |
                            (sends ? kAttrRetryCnt | kAttrRnrRetry | kAttrMaxQpRdAtomic : 0));
  }

  static uint8_t Mark(uint64_t message, uint32_t at) {
    return static_cast<uint8_t>(message * 37 + at * 11 + at / 256);
  }
  void Post() {
    // Receives are posted late now and then, so that senders meet empty queues.
    for (const auto& queue : queues_) {
      while (!queue->free.empty() && random_() % 4 == 0) {
        const uint32_t buffer = queue->free.back();
        ASSERT_TRUE(queue->end.PostReceive(
            buffer, {{Host::kBase + buffer * kRoom, static_cast<uint32_t>(kMost), to_.key()}}));
        queue->free.pop_back();
      }
    }
    if (messages_.size() == kMessages || messages_.size() - completed_ >= 16) return;
    const uint64_t number = messages_.size();
    const Message message{static_cast<uint32_t>(random_() % kQueues),
                          static_cast<uint32_t>(random_() % (kMost + 1))};
    const uint64_t at = number % 16 * kRoom;
    for (uint32_t i = 0; i < message.length; ++i) from_.memory()[at + i] = Mark(number, i);
    rocegw_send_wqe wqe{};
    wqe.wr_id = number;
    wqe.opcode = ROCEGW_WR_SEND;
    wqe.u.rdma.peer = NumberOf(message.queue);
    ASSERT_TRUE(source_.PostSend(wqe, {{Host::kBase + at, message.length, from_.key()}}));
    messages_.push_back(message);
    from_.Ring(source_);
  }
  void Take() {
    for (const rocegw_cqe& cqe : source_.Poll()) {
      ASSERT_EQ(cqe.status, 0);
      ASSERT_EQ(cqe.wr_id, completed_++);
    }
    // All messages are of one queue pair, so the queues' completions are in order together.
    for (size_t index = 0; index < kQueues; ++index) {
      Queue& queue = *queues_[index];
      for (const rocegw_cqe& cqe : queue.completions.Poll()) {
        ASSERT_EQ(cqe.status, 0);
        uint64_t& number = next_of_[index];
        while (number < messages_.size() && messages_[number].queue != index) ++number;
        ASSERT_LT(number, messages_.size()) << "a message that was not sent";
        ASSERT_EQ(cqe.byte_length, messages_[number].length) << "message " << number;
        const uint64_t at = cqe.wr_id * kRoom;
        for (uint32_t i = 0; i < cqe.byte_length; ++i)
          ASSERT_EQ(to_.memory()[at + i], Mark(number, i)) << "message " << number;
        ++number;
        ++received_;
        queue.end.Free(cqe.ring_slot);
        queue.free.push_back(static_cast<uint32_t>(cqe.wr_id));
      }
    }
  }

  std::mt19937_64 random_;
  rocegw_worker_line line_{};  // the domain has it
  rocegw_qp_status status_{};  // the target has it
  Network network_;
  Host from_;
  Host to_;
  RingEnd& source_;
  std::vector<std::unique_ptr<Queue>> queues_;
  std::vector<Message> messages_;
  uint64_t completed_ = 0;
  uint64_t received_ = 0;
  std::array<uint64_t, kQueues> next_of_{};
};

TEST(HandOver, OfXrc_AtRandomMoments_DeliversEveryMessageOnce) {
  const char* const one = std::getenv("ROCEGW_TEST_SEED");
  const uint64_t base = one != nullptr ? std::strtoull(one, nullptr, 0) : std::random_device()();
  uint64_t replacements = 0;
  for (uint64_t seed = base; seed < base + (one != nullptr ? 1 : 40); ++seed) {
    SCOPED_TRACE("ROCEGW_TEST_SEED=" + std::to_string(seed));
    replacements += XrcWorld(seed).Run();
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(replacements, one != nullptr ? 0u : 100u);
}

}  // namespace
}  // namespace rocegw::sim
