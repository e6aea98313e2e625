// SPDX-License-Identifier: Apache-2.0
// How fast many producers reach one consumer: 1 to 128 threads hand over 10,000 requests each, one
// thread reads all of them and checks their order. An item is the 64 bytes of a send request. The
// product puts it into its producer's send ring and announces it by the producer's doorbell bit;
// the consumer takes bells and requests as a worker does. Beside it, in the same run and in turn,
// queues that all producers share carry the same 64 bytes: a ring under a mutex, which the aim is
// relative to, two kinder ways to use a mutex, and a lock-free ring.
//
// Rows come in two kinds, compared only with their own: in one the 64 bytes are there before, in
// the other (posted) the library's ibv_post_send code checks an ibv_send_wr and makes them of it,
// under the queue's own lock, wherever they then go.
//
// All of them are filled and emptied alike: a producer that finds its queue full and a consumer
// that finds it empty pause 16 times and then give the core away; all have room for the same number
// of entries. Time is from the start of the threads to the last item.
#include <infiniband/verbs.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "gateway/client/rings/spinlock.h"
#include "tests/bench/doorbell/queues.h"
#include "tests/bench/measurement.h"
#include "tests/support/qp/send_queues.h"

namespace rocegw::bench {
namespace {

constexpr uint32_t kItems = 10000;
constexpr uint32_t kEntriesPerProducer = 256;
constexpr uint32_t kProducers[] = {1, 2, 4, 8, 16, 32, 64, 128};
constexpr double kAim = 0.25;
constexpr unsigned kPausesBeforeYield = 16;

class Backoff {
 public:
  void Wait() {
    if (++pauses_ < kPausesBeforeYield) {
      client::PauseBriefly();
      return;
    }
    pauses_ = 0;
    sched_yield();
  }
  void Reset() { pauses_ = 0; }

 private:
  unsigned pauses_ = 0;
};

uint64_t IdOf(uint32_t producer, uint32_t item) { return (uint64_t{producer} << 32) | item; }

// Every producer's items arrive in order, each once.
class OrderCheck {
 public:
  explicit OrderCheck(uint32_t producers) : next_(producers, 0) {}
  void See(uint64_t id) {
    const auto producer = static_cast<uint32_t>(id >> 32);
    if (producer >= next_.size() || static_cast<uint32_t>(id) != next_[producer]++) {
      std::fprintf(stderr, "bench_doorbell: item %llx is out of order\n",
                   static_cast<unsigned long long>(id));
      std::abort();
    }
  }

 private:
  std::vector<uint32_t> next_;
};

struct Taken {
  uint32_t items;
  bool busy;  // false: nothing there
};

// What a program posts.
class Request {
 public:
  Request() {
    // Too long to be copied at post time: the request describes it.
    sge_ = {0x10000, 1 << 16, 0x42};
    wr_.sg_list = &sge_;
    wr_.num_sge = 1;
    wr_.opcode = IBV_WR_RDMA_WRITE;
    wr_.wr.rdma.remote_addr = 0x20000;
    wr_.wr.rdma.rkey = 0x43;
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  ibv_send_wr* Numbered(uint64_t id) {
    wr_.wr_id = id;
    return &wr_;
  }

 private:
  ibv_sge sge_{};
  ibv_send_wr wr_{};
};

// Makes the 64 bytes as a post does, checks and lock of the queue included, and publishes nothing.
class EntryMaker {
 public:
  EntryMaker() {
    ring_.stride = sizeof made_;
    ring_.slots = reinterpret_cast<uint8_t*>(&made_);
    ring_.max_sge = 1;
    ring_.max_message = 1u << 31;
    ring_.status = &status_;
    ring_.qp_type = IBV_QPT_RC;
    ring_.state = IBV_QPS_RTS;
  }
  EntryMaker(const EntryMaker&) = delete;
  EntryMaker& operator=(const EntryMaker&) = delete;

  const Entry& Make(uint64_t id) {
    client::SendPost post(ring_);
    if (post.error() != 0 || post.Add(*request_.Numbered(id), ring_.order_flags) != 0) std::abort();
    post.Forget();
    return made_;
  }

 private:
  client::SendRing ring_{};
  rocegw_qp_status status_{};
  Request request_;
  Entry made_{};
};

// The rings of the product.
template <bool kPosted>
class Rings {
 public:
  explicit Rings(uint32_t producers) : queues_(producers, kEntriesPerProducer), mapping_(queues_) {}

  class Producer {
   public:
    Producer(Rings& rings, uint32_t number) : ring_(rings.mapping_.ring(number)) {
      if constexpr (!kPosted) entry_ = EntryMaker().Make(0);
    }
    bool Push(uint64_t id) {
      if constexpr (kPosted) {
        ibv_send_wr* bad;
        return client::PostSend(ring_, request_.Numbered(id), &bad) == 0;
      }
      if (ring_.producer - ring_.released_seen > ring_.mask) {
        ring_.released_seen = client::LoadAcquire(&ring_.status->sq_released);
        if (ring_.producer - ring_.released_seen > ring_.mask) return false;
      }
      entry_.id = id;
      client::FetchLaterSlot(ring_);
      std::memcpy(ring_.slots + size_t{ring_.producer & ring_.mask} * ring_.stride, &entry_,
                  sizeof entry_);
      client::StoreRelease(&ring_.control->sq_producer, ++ring_.producer);
      client::Ring(ring_.bell);
      return true;
    }

   private:
    client::SendRing& ring_;
    Request request_;
    Entry entry_{};
  };

  template <typename F>
  Taken Take(F&& on_id) {
    // The worker's thread reads the clock once in an iteration, too.
    const TimePoint now{static_cast<int64_t>(Seconds() * 1e9)};
    const auto found = queues_.Read(now, [&](uint32_t, const testing::SendQueues::Slot& slot) {
      rocegw_send_wqe wqe;
      std::memcpy(&wqe, slot.data(), sizeof wqe);
      on_id(wqe.wr_id);
    });
    return {found.requests, found.busy};
  }

 private:
  testing::SendQueues queues_;
  testing::SendQueues::ClientMapping mapping_;
};

// One queue for all.
template <typename Queue, bool kPosted>
class Shared {
 public:
  explicit Shared(uint32_t producers) : queue_(size_t{producers} * kEntriesPerProducer) {}

  class Producer {
   public:
    Producer(Shared& shared, uint32_t) : queue_(shared.queue_), entry_(maker_.Make(0)) {}
    bool Push(uint64_t id) {
      if constexpr (kPosted) return queue_.Push(maker_.Make(id));
      entry_.id = id;
      return queue_.Push(entry_);
    }

   private:
    Queue& queue_;
    EntryMaker maker_;
    Entry entry_;
  };

  template <typename F>
  Taken Take(F&& on_id) {
    const uint32_t taken = queue_.Take([&](const Entry& entry) { on_id(entry.id); });
    return {taken, taken != 0};
  }

 private:
  Queue queue_;
};

// Milliseconds for all items of all producers.
template <typename Transport>
double Run(uint32_t producers) {
  Transport transport(producers);
  std::atomic<bool> go{false};
  std::vector<std::thread> threads;
  threads.reserve(producers);
  for (uint32_t p = 0; p < producers; ++p) {
    threads.emplace_back([&transport, &go, p] {
      typename Transport::Producer producer(transport, p);
      Backoff backoff;
      go.wait(false);
      for (uint32_t i = 0; i < kItems; ++i) {
        while (!producer.Push(IdOf(p, i))) backoff.Wait();
        backoff.Reset();
      }
    });
  }
  OrderCheck check(producers);
  const uint64_t all = uint64_t{producers} * kItems;
  uint64_t seen = 0;
  Backoff backoff;
  const double begin = Seconds();
  go.store(true);
  go.notify_all();
  while (seen < all) {
    const Taken taken = transport.Take([&](uint64_t id) { check.See(id); });
    seen += taken.items;
    if (taken.busy) {
      backoff.Reset();
    } else {
      backoff.Wait();
    }
  }
  const double milliseconds = (Seconds() - begin) * 1e3;
  for (std::thread& thread : threads) thread.join();
  return milliseconds;
}

struct Contender {
  const char* name;
  double (*run)(uint32_t producers);
};
constexpr Contender kContenders[] = {
    {"send rings and doorbells", &Run<Rings<false>>},
    {"mutex, ring", &Run<Shared<MutexRing, false>>},
    {"mutex, swapped vectors", &Run<Shared<MutexSwap, false>>},
    {"mutex, condition variables", &Run<Shared<MutexWaiting, false>>},
    {"one lock-free ring", &Run<Shared<SharedRing, false>>},
    {"posted: rings, doorbells", &Run<Rings<true>>},
    {"posted: mutex, ring", &Run<Shared<MutexRing, true>>},
    {"posted: mutex, vectors", &Run<Shared<MutexSwap, true>>},
};
constexpr size_t kContenderCount = std::size(kContenders);

// The time of one contender, of the least time of others in the same round.
struct Comparison {
  const char* name;
  size_t rings;
  std::vector<size_t> others;
};
const Comparison kComparisons[] = {
    {"rings, of the mutex ring", 0, {1}},
    {"of the fastest mutex queue", 0, {1, 2, 3}},
    {"posted, of the mutex ring", 5, {6}},
    {"of the faster mutex queue", 5, {6, 7}},
};
constexpr size_t kComparisonCount = std::size(kComparisons);

void Print(const char* name, const std::vector<double>& values) {
  std::printf("%-28s", name);
  for (const double value : values) std::printf("%9.2f", value);
  std::printf("\n");
}

std::string Json(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : ",") + std::to_string(value);
  return "[" + text + "]";
}

int Main(int argc, char** argv) {
  const Arguments arguments = ParseArguments(argc, argv, 10);
  std::printf(
      "%s\n%u items of 64 bytes per producer thread, one consumer, room for %u entries per "
      "producer, median of %d rounds\n",
      Machine().c_str(), kItems, kEntriesPerProducer, arguments.rounds);
  std::printf("%-28s", "ms, for producers:");
  for (const uint32_t producers : kProducers) std::printf("%9u", producers);
  std::printf("\n");

  std::vector<double> median[kContenderCount];
  std::vector<double> ratios[kComparisonCount];
  for (const uint32_t producers : kProducers) {
    std::vector<double> times[kContenderCount];
    for (int round = 0; round < arguments.rounds; ++round) {
      for (size_t c = 0; c < kContenderCount; ++c) {
        times[c].push_back(kContenders[c].run(producers));
      }
    }
    for (size_t c = 0; c < kContenderCount; ++c) median[c].push_back(Median(times[c]));
    // Of each round: the machine may be another one in the next.
    for (size_t i = 0; i < kComparisonCount; ++i) {
      std::vector<double> of_rounds;
      for (size_t round = 0; round < times[0].size(); ++round) {
        double least = times[kComparisons[i].others.front()][round];
        for (const size_t c : kComparisons[i].others) least = std::min(least, times[c][round]);
        of_rounds.push_back(times[kComparisons[i].rings][round] / least);
      }
      ratios[i].push_back(Median(of_rounds));
    }
  }

  std::string json = "{\"machine\":\"" + Machine() + "\",\"milliseconds\":{";
  for (size_t c = 0; c < kContenderCount; ++c) {
    Print(kContenders[c].name, median[c]);
    json += (c == 0 ? "\"" : ",\"") + std::string(kContenders[c].name) + "\":" + Json(median[c]);
  }
  json += "},\"ratios\":{";
  for (size_t i = 0; i < kComparisonCount; ++i) {
    Print(kComparisons[i].name, ratios[i]);
    json += (i == 0 ? "\"" : ",\"") + std::string(kComparisons[i].name) + "\":" + Json(ratios[i]);
  }
  std::vector<double> rate;
  for (size_t i = 0; i < median[0].size(); ++i) {
    rate.push_back(kProducers[i] * kItems / median[0][i] / 1e3);
  }
  Print("million items/s, rings", rate);
  const double ratio = ratios[0].back();
  std::printf(
      "at %u producers %.3f of the time of the ring under a mutex, median of the rounds (aim: at "
      "most %.2f, %s); posted %.3f\n%s\n",
      kProducers[std::size(kProducers) - 1], ratio, kAim, ratio <= kAim ? "met" : "MISSED",
      ratios[2].back(), Machine().c_str());
  json += "},\"ratio\":" + std::to_string(ratio) + "}";
  WriteJson(arguments, json);
  return 0;
}

}  // namespace
}  // namespace rocegw::bench

int main(int argc, char** argv) { return rocegw::bench::Main(argc, argv); }
