// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "tests/bench/noise/lab.h"

namespace rocegw::testing {
namespace {

// Queue pairs whose send queues are always full of the same request.
class Flood : public Noise {
 public:
  struct Options {
    int from = kHere;
    uint32_t queues = 8;
    uint32_t depth = 16;
    uint32_t bytes = 8;
    uint8_t opcode = ROCEGW_WR_RDMA_WRITE;
  };
  Flood(Lab& lab, const Options& options) : lab_(lab), options_(options) {
    for (uint32_t i = 0; i < options.queues; ++i)
      pairs_.push_back(lab.Connect(kNoiseSession, options.depth));
  }
  void Stage() override {
    // Some at a time: a look at thousands of rings would throw out of the caches what the worker
    // has there, and programs do that on other cores.
    for (size_t i = 0; i < std::min(kStagedAtOnce, pairs_.size()); ++i) {
      Pair& pair = pairs_[next_++ % pairs_.size()];
      RingEnd& end = options_.from == kHere ? *pair.here : *pair.peer;
      end.Poll();
      bool posted = false;
      while (lab_.Post(options_.from, end, Lab::Request(0, options_.opcode), options_.bytes)) {
        posted = true;
      }
      if (posted) lab_.gateways().Ring(options_.from, end);
    }
  }

 protected:
  Lab& lab_;
  Options options_;
  std::vector<Pair> pairs_;
  size_t next_ = 0;

 private:
  static constexpr size_t kStagedAtOnce = 32;
};

template <int kFrom, uint32_t kQueues, uint32_t kDepth, uint32_t kBytes, uint8_t kOpcode>
std::unique_ptr<Noise> MakeFlood(Lab& lab) {
  return std::make_unique<Flood>(lab, Flood::Options{kFrom, kQueues, kDepth, kBytes, kOpcode});
}

// Every request fails; every queue pair goes to error, is flushed and set up anew.
class ErrorStorm final : public Noise {
 public:
  explicit ErrorStorm(Lab& lab) : lab_(lab) {
    for (int i = 0; i < 64; ++i) queues_.push_back({lab.Connect(kNoiseSession, kDepth)});
  }
  void Stage() override {
    for (Queue& queue : queues_) {
      queue.open -= queue.pair.here->Poll().size();
      if (queue.open != 0) continue;
      if (queue.pair.here->status().state == static_cast<uint32_t>(verbs::QpState::kError)) {
        // What is posted before it runs again would be forgotten.
        if (!queue.restarting && !Restart(*queue.pair.here)) return;
        queue.restarting = true;
        continue;
      }
      if (queue.pair.here->status().state != static_cast<uint32_t>(verbs::QpState::kRts)) continue;
      queue.restarting = false;
      rocegw_send_wqe wqe = Lab::Request(0, ROCEGW_WR_RDMA_WRITE);
      wqe.u.rdma.rkey = 1;
      const rocegw_sge nowhere{16, 64, 7};
      while (queue.pair.here->PostSend(wqe, {nowhere})) ++queue.open;
      lab_.gateways().Ring(kHere, *queue.pair.here);
    }
  }

 private:
  static constexpr uint32_t kDepth = 16;
  struct Queue {
    Pair pair;
    size_t open = 0;
    bool restarting = false;
  };
  // False: the worker takes no more messages for now.
  bool Restart(const RingEnd& end) {
    using namespace verbs;  // NOLINT(google-build-using-namespace)
    QpAttributes want = lab_.gateways().AttributesOf(kHere, end);
    const auto step = [&](QpState state, uint32_t mask) {
      want.state = state;
      const worker::ModifyQp body{SessionId{kNoiseSession}, Qpn{end.options().qpn},
                                  kAttrState | mask, want};
      return lab_.gateways().Tell(kHere, 0, {0, body});
    };
    if (!step(QpState::kReset, 0)) return false;
    step(QpState::kInit, kAttrPkeyIndex | kAttrPort | kAttrAccessFlags);
    step(QpState::kRtr, kAttrAv | kAttrPathMtu | kAttrDestQpn | kAttrRqPsn | kAttrMaxDestRdAtomic |
                            kAttrMinRnrTimer);
    step(QpState::kRts,
         kAttrTimeout | kAttrRetryCnt | kAttrRnrRetry | kAttrSqPsn | kAttrMaxQpRdAtomic);
    return true;
  }
  Lab& lab_;
  std::vector<Queue> queues_;
};

// Rings every bell that it has, and more, for nothing.
class DoorbellSpam final : public Noise {
 public:
  explicit DoorbellSpam(Lab& lab) : page_(*lab.gateways().page(kHere, 0, kNoiseSession)) {
    for (int i = 0; i < 4000; ++i) lab.Connect(kNoiseSession, 4);
  }
  void Stage() override {
    for (uint64_t& leaf : page_.leaf) __atomic_store_n(&leaf, ~uint64_t{0}, __ATOMIC_RELAXED);
    __atomic_store_n(&page_.summary, ~uint64_t{0}, __ATOMIC_SEQ_CST);
  }

 private:
  rocegw_doorbell_page& page_;
};

// Makes and destroys queue pairs as fast as the worker takes it.
class ControlStorm final : public Noise {
 public:
  explicit ControlStorm(Lab& lab) : lab_(lab) {
    RingOptions ring;
    ring.session = kNoiseSession;
    ring.handle = 4001;
    ring.qpn = 90000;
    end_ = &lab.gateways().AddQp(kHere, ring);
  }
  void Stage() override {
    const SessionId session{kNoiseSession};
    const Qpn qpn{end_->options().qpn};
    for (int i = 0; i < 32; ++i) {
      const bool told = linked_
                            ? lab_.gateways().Tell(kHere, 0, {0, worker::UnlinkQp{session, qpn}})
                            : lab_.gateways().Tell(kHere, 0, {0, worker::LinkQp{end_->Qp()}});
      if (!told) return;
      linked_ = !linked_;
    }
  }

 private:
  Lab& lab_;
  RingEnd* end_;
  bool linked_ = true;
};

template <typename T>
std::unique_ptr<Noise> Make(Lab& lab) {
  return std::make_unique<T>(lab);
}

}  // namespace

const NoiseKind kTwin = {
    "twin", "another that behaves like it", true,
    MakeFlood<kHere, Victim::kQueues, Victim::kDepth, Victim::kBytes, ROCEGW_WR_RDMA_WRITE>};

const std::vector<NoiseKind> kNoises = {
    {"many_qps", "2,000 queue pairs with 64-byte WRITEs", true,
     MakeFlood<kHere, 2000, 8, 64, ROCEGW_WR_RDMA_WRITE>},
    {"tiny_writes", "8 queue pairs, 256 WRITEs of 8 bytes each under way", true,
     MakeFlood<kHere, 8, 256, 8, ROCEGW_WR_RDMA_WRITE>},
    {"bulk_writes", "8 queue pairs with WRITEs of 1 MiB", true,
     MakeFlood<kHere, 8, 4, 1 << 20, ROCEGW_WR_RDMA_WRITE>},
    {"error_storm", "64 queue pairs that fail, flush and start again", true, Make<ErrorStorm>},
    {"doorbell_spam", "4,000 queue pairs that ring all the time for nothing", true,
     Make<DoorbellSpam>},
    {"rnr_storm", "64 queue pairs that SEND to somebody who never receives", true,
     MakeFlood<kHere, 64, 16, 64, ROCEGW_WR_SEND>},
    {"atomics_one_line", "peers' fetch-and-adds on one word here, 32 queue pairs", true,
     MakeFlood<kPeer, 32, 16, 8, ROCEGW_WR_ATOMIC_FETCH_AND_ADD>},
    {"read_amplification", "peers' READs of 1 MiB from here, 16 queue pairs", true,
     MakeFlood<kPeer, 16, 8, 1 << 20, ROCEGW_WR_RDMA_READ>},
    {"control_storm", "queue pairs made and destroyed all the time", true, Make<ControlStorm>},
    {"inbound_writes", "peers' WRITEs of 64 bytes to here, 32 queue pairs", false,
     MakeFlood<kPeer, 32, 64, 64, ROCEGW_WR_RDMA_WRITE>},
    {"inbound_frames", "the same over the victim's channel", false,
     MakeFlood<kPeer, 32, 64, 64, ROCEGW_WR_RDMA_WRITE>, true},
    {"inbound_blocks", "peers' WRITEs of 64 KiB to here over the victim's channel, 32 queue pairs",
     false, MakeFlood<kPeer, 32, 8, 64 << 10, ROCEGW_WR_RDMA_WRITE>, true},
};

}  // namespace rocegw::testing
