// SPDX-License-Identifier: Apache-2.0
// How fast many producers reach one consumer: 1 to 128 threads post 10,000 requests each, one
// thread reads all of them and checks their order. An item is a 64-byte send request, posted by the
// library's own code into its producer's send ring and announced by its doorbell bit; the consumer
// takes bells and requests as a worker does. Beside it, in the same run and in turn, queues that
// all producers share carry the same 64 bytes: a ring under a mutex, which the aim is relative to,
// two kinder ways to use a mutex, and a lock-free ring.
//
// All of them are filled and emptied alike: a producer that finds its queue full and a consumer
// that finds it empty pause 64 times and then give the core away; all have room for the same number
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
#include "tests/support/send_queues.h"

namespace rocegw::bench {
namespace {

constexpr uint32_t kItems = 10000;
constexpr uint32_t kEntriesPerProducer = 256;
constexpr uint32_t kProducers[] = {1, 2, 4, 8, 16, 32, 64, 128};
constexpr double kAim = 0.25;
constexpr unsigned kPausesBeforeYield = 64;

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

// The rings of the product.
class Rings {
 public:
  explicit Rings(uint32_t producers) : queues_(producers, kEntriesPerProducer), mapping_(queues_) {}

  class Producer {
   public:
    Producer(Rings& rings, uint32_t number) : ring_(rings.mapping_.ring(number)) {
      // Too long to be copied at post time: the request describes it.
      sge_ = {0x10000, 1 << 16, 0x42};
      wr_.sg_list = &sge_;
      wr_.num_sge = 1;
      wr_.opcode = IBV_WR_RDMA_WRITE;
      wr_.wr.rdma.remote_addr = 0x20000;
      wr_.wr.rdma.rkey = 0x43;
    }
    bool Push(uint64_t id) {
      wr_.wr_id = id;
      ibv_send_wr* bad;
      return client::PostSend(ring_, &wr_, &bad) == 0;
    }

   private:
    client::SendRing& ring_;
    ibv_sge sge_{};
    ibv_send_wr wr_{};
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
template <typename Queue>
class Shared {
 public:
  explicit Shared(uint32_t producers) : queue_(size_t{producers} * kEntriesPerProducer) {}

  class Producer {
   public:
    Producer(Shared& shared, uint32_t) : queue_(shared.queue_) {
      for (uint64_t& word : entry_.rest) word = 0x10000;
    }
    bool Push(uint64_t id) {
      entry_.id = id;
      return queue_.Push(entry_);
    }

   private:
    Queue& queue_;
    Entry entry_{};
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
    {"send rings and doorbells", &Run<Rings>},
    {"mutex, ring", &Run<Shared<MutexRing>>},
    {"mutex, swapped vectors", &Run<Shared<MutexSwap>>},
    {"mutex, condition variables", &Run<Shared<MutexWaiting>>},
    {"one lock-free ring", &Run<Shared<SharedRing>>},
};
constexpr size_t kContenderCount = std::size(kContenders);

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
  std::string json = "{\"machine\":\"";
  json += Machine();
  json += "\",\"milliseconds\":{";
  std::vector<std::string> rows(kContenderCount);
  std::vector<double> shares;
  std::vector<double> fastest;
  for (const uint32_t producers : kProducers) {
    std::vector<double> times[kContenderCount];
    for (int round = 0; round < arguments.rounds; ++round) {
      for (size_t c = 0; c < kContenderCount; ++c) {
        times[c].push_back(kContenders[c].run(producers));
      }
    }
    // Of each round: the machine may be another one in the next.
    std::vector<double> of_mutex_ring;
    std::vector<double> of_fastest;
    for (size_t round = 0; round < times[0].size(); ++round) {
      of_mutex_ring.push_back(times[0][round] / times[1][round]);
      of_fastest.push_back(times[0][round] /
                           std::min({times[1][round], times[2][round], times[3][round]}));
    }
    shares.push_back(Median(of_mutex_ring));
    fastest.push_back(Median(of_fastest));
    for (size_t c = 0; c < kContenderCount; ++c) {
      median[c].push_back(Median(times[c]));
      if (!rows[c].empty()) rows[c] += ',';
      rows[c] += std::to_string(median[c].back());
    }
  }
  for (size_t c = 0; c < kContenderCount; ++c) {
    std::printf("%-28s", kContenders[c].name);
    for (const double milliseconds : median[c]) std::printf("%9.2f", milliseconds);
    std::printf("\n");
    json += c == 0 ? "\"" : ",\"";
    json += kContenders[c].name;
    json += "\":[";
    json += rows[c];
    json += ']';
  }
  std::printf("%-28s", "rings, of the mutex ring");
  for (const double share : shares) std::printf("%9.2f", share);
  std::printf("\n%-28s", "of the fastest mutex queue");
  for (const double share : fastest) std::printf("%9.2f", share);
  std::printf("\n%-28s", "million items/s, rings");
  for (size_t i = 0; i < median[0].size(); ++i) {
    std::printf("%9.1f", kProducers[i] * kItems / median[0][i] / 1e3);
  }
  const double ratio = shares.back();
  std::printf(
      "\nat %u producers %.3f of the time of the ring under a mutex, median of the rounds (aim: at "
      "most %.2f, %s)\n%s\n",
      kProducers[std::size(kProducers) - 1], ratio, kAim, ratio <= kAim ? "met" : "MISSED",
      Machine().c_str());
  json += "},\"ratio\":";
  json += std::to_string(ratio);
  json += '}';
  WriteJson(arguments, json);
  return 0;
}

}  // namespace
}  // namespace rocegw::bench

int main(int argc, char** argv) { return rocegw::bench::Main(argc, argv); }
