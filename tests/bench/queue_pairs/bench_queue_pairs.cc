// SPDX-License-Identifier: Apache-2.0
// WRITEs over many active queue pairs between two workers of one process, native and on channels.
// The queue pairs post one message each, 64 of them before each iteration of the workers, in the
// same order again and again. With many queue pairs, each message therefore finds the state of its
// queue pair outside of the caches. Only the workers' time counts, not the programs'.
//
// Gate (exit status 1): 16,384 queue pairs have 80 % of the rate of 64 queue pairs of the same run.
//
// `--count NUMBER native|channel BYTES MESSAGES` runs one setting once under callgrind, which
// counts instructions and cache misses of the workers (docs/benchmarks.md has the command).
#include <sys/wait.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "tests/bench/measurement.h"
#include "tests/support/network/gateway_pair.h"

namespace rocegw::testing {
namespace {

constexpr uint32_t kQpsPerSession = 4000;  // a doorbell page has 4,096 bits
constexpr uint32_t kBatch = 64;
constexpr double kLeastRate = 0.80;
constexpr uint32_t kGated = 16384;

struct Setting {
  uint32_t queue_pairs;
  bool channels;
  uint32_t bytes;
};

// CPU seconds of each worker.
struct Spent {
  double seconds[2] = {};
};

class World {
 public:
  explicit World(const Setting& setting) : setting_(setting), gateways_(Options(setting)) {
    for (uint32_t i = 0; i < setting.queue_pairs; ++i) {
      RingOptions ring;
      ring.session = 1 + i / kQpsPerSession;
      ring.handle = 1 + i % kQpsPerSession;
      ring.qpn = 0x100 + i;
      ring.sq_entries = ring.rq_entries = 4;
      ring.cq_entries = 8;
      ring.max_sge = 1;
      senders_.push_back(&gateways_.AddQp(0, ring));
      gateways_.Connect(*senders_.back(), gateways_.AddQp(1, ring));
      gateways_.notices.clear();
    }
    now_ = gateways_.now();
  }

  // Sends so many messages. `counts`: callgrind counts the workers.
  Spent Run(uint32_t messages, bool counts) {
    Spent spent;
    for (uint32_t done = 0; done < messages; done += kBatch) {
      for (uint32_t i = 0; i < kBatch; ++i) Post(*senders_[(next_ + i) % senders_.size()]);
      size_t open = kBatch;
      for (int turns = 0; open != 0; ++turns) {
        if (turns == 100) std::abort();
        now_ = now_ + Microseconds(20);
        for (const int side : {0, 1, 0}) RunWorker(side, spent, counts);
        for (uint32_t i = 0; i < kBatch; ++i)
          open -= Poll(*senders_[(next_ + i) % senders_.size()]);
      }
      next_ = static_cast<uint32_t>((next_ + kBatch) % senders_.size());
    }
    gateways_.TakeNotices();
    gateways_.notices.clear();
    return spent;
  }
  uint64_t retransmissions() const {
    return gateways_.Count(0, &metrics::WorkerCounters::retransmit_packets);
  }

 private:
  static GatewayPairOptions Options(const Setting& setting) {
    GatewayPairOptions options;
    options.reach = Reach::kDirect;
    options.memory_bytes = 1 << 20;
    options.channels = setting.channels;
    const std::vector<tenant::Share*> sessions(
        (setting.queue_pairs + kQpsPerSession - 1) / kQpsPerSession, nullptr);
    options.shares[0] = options.shares[1] = sessions;
    return options;
  }
  void Post(RingEnd& end) {
    const uint32_t session = end.options().session;
    rocegw_send_wqe wqe{};
    wqe.opcode = ROCEGW_WR_RDMA_WRITE;
    wqe.flags = ROCEGW_WQE_SIGNALED;
    wqe.u.rdma.rkey = GatewayPair::KeyOf(1, session).value;
    wqe.u.rdma.remote_address = gateways_.Base(1);
    const rocegw_sge sge{gateways_.Base(0), setting_.bytes, GatewayPair::KeyOf(0, session).value};
    if (!end.PostSend(wqe, {sge})) std::abort();
    gateways_.Ring(0, end);
  }
  static size_t Poll(RingEnd& end) {
    const std::vector<rocegw_cqe> completions = end.Poll();
    for (const rocegw_cqe& cqe : completions)
      if (cqe.status != 0) std::abort();
    return completions.size();
  }
  void RunWorker(int side, Spent& spent, bool counts) {
    if (counts) CALLGRIND_TOGGLE_COLLECT;
    const double begin = bench::ThreadCpuSeconds();
    gateways_.RunWorker(side, 0, now_);
    spent.seconds[side] += bench::ThreadCpuSeconds() - begin - bench::ThreadCpuClockCost();
    if (counts) CALLGRIND_TOGGLE_COLLECT;
  }

  const Setting setting_;
  GatewayPair gateways_;
  std::vector<RingEnd*> senders_;
  uint32_t next_ = 0;
  TimePoint now_;
};

int Count(const Setting& setting, uint32_t messages) {
  World world(setting);
  // All queue pairs have sent; then the simulated caches fill.
  world.Run(std::max(setting.queue_pairs, 1024u), false);
  CALLGRIND_START_INSTRUMENTATION;
  world.Run(4096, false);
  world.Run(messages, true);
  CALLGRIND_STOP_INSTRUMENTATION;
  std::printf("messages %u\n", messages);
  return 0;
}

constexpr uint32_t kNumbers[] = {64, 1024, 16384, 65536};

// Result of one number of queue pairs: medians of the rounds.
struct Row {
  double us[2] = {};  // by side
  double of_64 = 0;
  bool retransmitted = false;
};
using Rows = std::array<Row, std::size(kNumbers)>;

Rows Measure(bool channels, uint32_t bytes, int rounds) {
  // The worlds take turns, so that a slow minute of the machine hits all of them.
  std::vector<std::unique_ptr<World>> worlds;
  for (const uint32_t number : kNumbers)
    worlds.push_back(std::make_unique<World>(Setting{number, channels, bytes}));
  std::array<std::vector<double>, std::size(kNumbers)> us[2], ratio;
  for (int round = -1; round < rounds; ++round) {
    double of_64 = 0;
    for (size_t i = 0; i < worlds.size(); ++i) {
      constexpr uint32_t kMessages = 65536;
      const Spent spent = worlds[i]->Run(kMessages, false);
      if (round < 0) continue;  // the first use of each queue pair
      const double all = spent.seconds[0] + spent.seconds[1];
      if (i == 0) of_64 = all;
      ratio[i].push_back(of_64 / all);
      for (const int side : {0, 1}) us[side][i].push_back(spent.seconds[side] / kMessages * 1e6);
    }
  }
  Rows rows;
  for (size_t i = 0; i < worlds.size(); ++i) {
    for (const int side : {0, 1}) rows[i].us[side] = bench::Median(us[side][i]);
    rows[i].of_64 = bench::Median(ratio[i]);
    rows[i].retransmitted = worlds[i]->retransmissions() != 0;
  }
  return rows;
}

// Measures in a process of its own, since the worlds of another setting leave a heap full of holes,
// in which malloc takes longer and objects of one queue pair lie far from each other.
Rows MeasureApart(bool channels, uint32_t bytes, int rounds) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  const pid_t child = fork();
  if (child == 0) {
    const Rows rows = Measure(channels, bytes, rounds);
    _exit(write(ends[1], &rows, sizeof rows) == sizeof rows ? 0 : 1);
  }
  close(ends[1]);
  Rows rows;
  const bool whole = child > 0 && read(ends[0], &rows, sizeof rows) == sizeof rows;
  close(ends[0]);
  if (!whole || waitpid(child, nullptr, 0) != child) std::abort();
  return rows;
}

int Main(int argc, char** argv) {
  if (argc == 6 && std::strcmp(argv[1], "--count") == 0) {
    return Count({static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10)),
                  std::strcmp(argv[3], "channel") == 0,
                  static_cast<uint32_t>(std::strtoul(argv[4], nullptr, 10))},
                 static_cast<uint32_t>(std::strtoul(argv[5], nullptr, 10)));
  }
  const bench::Arguments arguments = bench::ParseArguments(argc, argv, 7);
  std::printf("%s\nWRITEs, median of %d rounds; us of CPU per message\n", bench::Machine().c_str(),
              arguments.rounds);
  std::printf("%-8s %6s %12s %9s %9s %12s %8s\n", "", "bytes", "queue pairs", "sender", "receiver",
              "M/s a core", "of 64");
  std::fflush(stdout);
  bool kept = true;
  std::string json = "[";
  for (const bool channels : {false, true}) {
    for (const uint32_t bytes : {64u, 4096u}) {
      const Rows rows = MeasureApart(channels, bytes, arguments.rounds);
      for (size_t i = 0; i < rows.size(); ++i) {
        const double sender = rows[i].us[0], receiver = rows[i].us[1];
        const bool missed = kNumbers[i] <= kGated && rows[i].of_64 < kLeastRate;
        kept &= !missed;
        std::printf("%-8s %6u %12u %9.3f %9.3f %12.3f %8.2f%s%s\n", channels ? "channel" : "native",
                    bytes, kNumbers[i], sender, receiver, 1 / std::max(sender, receiver),
                    rows[i].of_64, missed ? "  MISSED" : "",
                    rows[i].retransmitted ? "  (retransmissions)" : "");
        char row[200];
        std::snprintf(row, sizeof row,
                      "%s{\"channel\":%s,\"bytes\":%u,\"queue_pairs\":%u,\"sender_us\":%.4f,"
                      "\"receiver_us\":%.4f,\"of_64\":%.3f}",
                      json.size() == 1 ? "" : ",", channels ? "true" : "false", bytes, kNumbers[i],
                      sender, receiver, rows[i].of_64);
        json += row;
      }
      std::fflush(stdout);
    }
  }
  std::printf("gate: at least %.2f of the rate of 64 queue pairs up to %u\n", kLeastRate, kGated);
  bench::WriteJson(arguments, json + "]");
  return kept ? 0 : 1;
}

}  // namespace
}  // namespace rocegw::testing

int main(int argc, char** argv) { return rocegw::testing::Main(argc, argv); }
